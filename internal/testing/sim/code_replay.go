package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// codeReplay calls a function again behind a beginning of its recorded steps. Later steps have the
// results that are recorded, in their order.
type codeReplay struct {
	program *codeProgram
	job     job.Job
	known   []flow.CodeStep
	at      map[string]int // positions of the known steps, by place

	mu        sync.Mutex
	steps     []conversation.Step
	unknown   string // a step whose result differs from the known result
	otherRace bool   // another branch won a race
}

// replayLimit is how long a replay may take.
const replayLimit = 24 * time.Hour

// replayPrefix replays a function behind the first n of its steps, to its end. ok is false if
// another branch has won a race.
func replayPrefix(p *codeProgram, j job.Job, known []flow.CodeStep, n int) (o conversation.Outcome, ok bool, err error) {
	r := &codeReplay{program: p, job: j, known: known, at: map[string]int{}}
	for i := range known {
		r.at[stepPlace(&known[i])] = i
	}
	for _, s := range known[:n] {
		r.steps = append(r.steps, toStep(&s))
	}
	for {
		o, waits := r.callOnce()
		switch {
		case r.otherRace:
			return o, false, nil
		case o.Over:
			return o, false, errors.New("it does not end")
		case o.Held != "":
			return o, false, errors.New(o.Held)
		case r.unknown != "":
			return o, false, errors.New(r.unknown)
		case len(waits) == 0:
			return o, true, nil
		}
		if !r.endFirst(waits) {
			return o, false, fmt.Errorf("it waits for %s, which has no recorded end", waits[0].Place())
		}
	}
}

func toStep(s *flow.CodeStep) conversation.Step {
	return conversation.Step{Name: flow.TrimRestartPrefix(s.Name), Use: s.Use, Kind: conversation.Kind(s.Kind), Hash: s.Hash,
		Output: s.Output, Error: s.Error, Details: s.Details, Tries: s.Tries, StartedAt: s.StartedAt, EndedAt: s.EndedAt}
}

// callOnce calls the function once. It returns its waits if it only waits.
func (r *codeReplay) callOnce() (conversation.Outcome, []*conversation.Wait) {
	ctx, cancel := context.WithTimeout(context.Background(), replayLimit)
	defer cancel()
	c := conversation.New(ctx, r.job, slices.Clone(r.steps), r, 0)
	c.ReplaceWork(r.workOf, func(time.Duration) {})
	call := &codeCall{takeTurn: func(<-chan struct{}, string, string) {}}
	o := c.Run(ctx, func() (json.RawMessage, error) { return call.callProgram(c, r.program) })
	waits := o.Waits
	c.Drop()
	return o, waits
}

// positionOf returns the position of a step among the known steps, or -1.
func (r *codeReplay) positionOf(s *conversation.Step) int {
	known := flow.CodeStep{Name: s.Name, Use: s.Use, Kind: flow.CodeKind(s.Kind), Tries: s.Tries}
	if at, is := r.at[stepPlace(&known)]; is {
		return at
	}
	return -1
}

// workOf returns the known result of a step. A step that is not known belongs to a branch that was
// canceled, so any result will do.
func (r *codeReplay) workOf(s *conversation.Step) conversation.Work {
	at := r.positionOf(s)
	if at < 0 && s.Kind != conversation.Do {
		return nil
	}
	return func(context.Context) (json.RawMessage, error) {
		if at < 0 {
			return json.RawMessage("0"), nil
		}
		if text := r.known[at].Error; text != "" {
			return nil, job.Fatal(errors.New(text))
		}
		return r.known[at].Output, nil
	}
}

// Record compares the steps with the known steps.
func (r *codeReplay) Record(_ context.Context, steps []*conversation.Step, _ []*conversation.Wait) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range steps {
		at := r.positionOf(s)
		switch {
		case at < 0:
		case s.Kind == conversation.Race && string(s.Output) != string(r.known[at].Output):
			r.otherRace = true
		case string(s.Kind) != string(r.known[at].Kind) || s.Hash != r.known[at].Hash:
			r.unknown = fmt.Sprintf("it asks for %s %s, and the history has %s", s.Kind, s.Place(), r.known[at].Kind)
		}
		r.steps = append(r.steps, *s)
	}
	return nil
}

// Listen does nothing: waits end only when the function has been given up.
func (*codeReplay) Listen(func(conversation.Step)) {}

// Now returns any time.
func (*codeReplay) Now() time.Time { return epoch }

// endFirst ends the wait that ended first.
func (r *codeReplay) endFirst(waits []*conversation.Wait) bool {
	first := -1
	for _, w := range waits {
		if at := r.positionOf(&w.Step); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	if first >= 0 {
		r.steps = append(r.steps, toStep(&r.known[first]))
	}
	return first >= 0
}

// checkReplays replays the last life of a function behind some beginnings of its steps. Each of
// them ends as the function did.
func (u *simUser) checkReplays(s *flow.State, steps []flow.CodeStep, out codeInput, failed error) {
	input := u.play.params
	if s.Root.Function.NextInput != nil {
		input = s.Root.Function.NextInput
	}
	for i := range steps {
		steps[i].Name = flow.TrimRestartPrefix(steps[i].Name)
	}
	j := job.WithKey("replay", job.Job{ID: "replay", Params: input, Task: u.task})
	for range min(len(steps)+1, 6) {
		n := u.w.rng.IntN(len(steps) + 1)
		o, ok, err := replayPrefix(u.play.code, j, steps, n)
		if err == nil && ok {
			u.ledger.counts.Replays++
			err = compareEnd(o, out, failed)
		}
		if err != nil {
			u.w.failRun("task %s: a replay behind %d of its %d steps differs: %v", u.task, n, len(steps), err)
			return
		}
	}
}

// compareEnd compares the end of a function with the end of its replay.
func compareEnd(o conversation.Outcome, out codeInput, failed error) error {
	want, _ := json.Marshal(out)
	switch {
	case failed == nil && o.Err != nil:
		return fmt.Errorf("it fails: %w", o.Err)
	case failed != nil && (o.Err == nil || !strings.HasPrefix(o.Err.Error(), failed.Error())):
		return fmt.Errorf("it ends with %v, and did with %v", o.Err, failed)
	case failed == nil && string(o.Output) != string(want):
		return fmt.Errorf("it returns %s, and did return %s", o.Output, want)
	}
	return nil
}
