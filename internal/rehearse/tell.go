package rehearse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Line is a described event of a story.
type Line struct {
	Time time.Duration
	Text string
}

// maxValue is the maximal length of a value in a line.
const maxValue = 160

// Tell returns the story as lines of text.
func (s *Story) Tell() (lines []Line) {
	beside := s.besideLines()
	for i := 0; i <= len(s.Events); i++ {
		for len(beside) > 0 && beside[0].at <= i {
			lines = append(lines, beside[0].Line)
			beside = beside[1:]
		}
		if i == len(s.Events) {
			break
		}
		if text := s.eventText(&s.Events[i]); text != "" {
			lines = append(lines, Line{s.Since(s.Events[i].At), text})
		}
	}
	return append(lines, s.lastLines()...)
}

// storyNote is a line to be placed before an event.
type storyNote struct {
	at int
	Line
}

// besideLines returns lines for everything that is not in the journal: calls, acts and faults.
func (s *Story) besideLines() (all []storyNote) {
	for _, c := range s.Calls {
		all = append(all, storyNote{c.BeganAt, Line{c.Began, fmt.Sprintf("%s: %s is called with %s", c.Name, c.Service(), Value(c.Input))}})
	}
	for i := range s.Done {
		d := &s.Done[i]
		text := "from outside: " + d.ID
		if d.Err != nil {
			text += ", in vain: " + d.Err.Error()
		}
		all = append(all, storyNote{d.At, Line{d.Time, text}})
	}
	for _, f := range s.Struck {
		all = append(all, storyNote{f.At, Line{f.Time, "✗ " + f.Text()}})
	}
	slices.SortStableFunc(all, func(a, b storyNote) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Time, b.Time)) })
	return all
}

// eventText describes an event; "" if it needs no line.
func (s *Story) eventText(e *flow.Event) string {
	at := nameOf(e.Address(), true)
	switch e.Type {
	case flow.TaskCreated:
		return "the task starts with " + Value(e.Params)
	case flow.StepEntered:
		return at + " begins"
	case flow.StepEnded:
		return at + " " + endText(e)
	case flow.AttemptEnded:
		name := s.attemptName(e.Address())
		if e.Error != "" {
			return joinText(fmt.Sprintf("%s: the attempt fails: %s", name, shortenText(e.Error)), retryText(e))
		}
		if e.Status == string(flow.AttemptCanceled) {
			return name + ": the attempt is canceled before it begins"
		}
		return fmt.Sprintf("%s: the attempt gives %s", name, Value(e.Output))
	case flow.AttemptRequeued:
		return s.attemptName(e.Address()) + " is to be carried out again"
	case flow.SignalReceived:
		return fmt.Sprintf("%s = %s is signaled", e.Key, Value(e.Output))
	case flow.UnitsAppended:
		return fmt.Sprintf("%d units are appended to %s", e.Total, at)
	case flow.TaskClosing:
		if e.Total == 0 {
			return fmt.Sprintf("the task is to end as %s, and runs its finally", e.Status)
		}
		return fmt.Sprintf("the task is to end as %s, and undoes %d", e.Status, e.Total)
	case flow.TaskEnded:
		return joinText(fmt.Sprintf("the task is %s", e.Status), e.Error)
	case flow.StepHeld:
		return fmt.Sprintf("step %s was paused", e.Node)
	case flow.StepReleased:
		return fmt.Sprintf("step %s was resumed", e.Node)
	case flow.TaskPaused:
		return "the task is paused"
	case flow.TaskResumed:
		return "the task is resumed"
	case flow.TaskRetried:
		return "the task is retried"
	case flow.CancelRequested:
		return "the task is to be canceled when nothing is under way"
	}
	return ""
}

// attemptName returns the name of a called attempt, or else of its unit.
func (s *Story) attemptName(a flow.Address) string {
	for _, c := range s.Calls {
		if c.Address == a {
			return c.Name
		}
	}
	return nameOf(a, true)
}

func endText(e *flow.Event) string {
	text := "is " + e.Status
	if e.Action != "" {
		text += " with the action " + e.Action
	}
	if e.Next != "" {
		text += " → " + e.Next
	}
	if e.Error == "" && e.Reason != "" {
		return text + " (" + e.Reason + ")"
	}
	return joinText(text, shortenText(e.Error))
}

func retryText(e *flow.Event) string {
	if e.Due == 0 {
		return ""
	}
	return fmt.Sprintf("it is tried again %s later", Span(flow.Milliseconds(e.Due-e.At)))
}

// lastLines describes why a task has not ended.
func (s *Story) lastLines() (lines []Line) {
	if s.Err != nil {
		return []Line{{s.Took, s.Err.Error()}}
	}
	for _, w := range flow.Waiting(s.State) {
		lines = append(lines, Line{s.Took, strings.TrimPrefix(w.Step()+": ", ": ") + w.Text + " (still waiting)"})
	}
	return lines
}

// Value formats JSON, shortened to fit into a line.
func Value(v json.RawMessage) string {
	if len(v) == 0 {
		return "null"
	}
	return shortenText(string(v))
}

func shortenText(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxValue {
		return string(r[:maxValue-1]) + "…"
	}
	return text
}

func joinText(text, more string) string {
	if more == "" {
		return text
	}
	return text + ": " + more
}
