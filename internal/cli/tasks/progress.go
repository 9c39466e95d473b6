package tasks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// Progress is the progress of a task, computed from its events.
type Progress struct {
	State    string // running, paused, completed, failed, canceled
	err      string
	Began    time.Time
	Ended    time.Time
	Steps    int           // number of steps that have ended
	followed int           // ended steps that failed while their task continued
	failed   nodeID        // the last failed step
	last     *StepProgress // the step that was entered last among the ended steps
	// number of steps that were entered, or ended without being entered; gives the steps their
	// order
	entered int
	Active  map[stepVisit]*StepProgress
	nodes   map[nodeID]*nodeProgress
}

type nodeID struct{ scope, node string }

type stepVisit struct {
	nodeID
	n int
}

// StepProgress is a step under way.
type StepProgress struct {
	at           stepVisit
	order        int // position among all steps
	entered      time.Time
	total        int // number of units
	done, failed int // failed units count as done, too
	attempt      int
	attempts     int // number of started attempts, of all units
	worker       string
	retry        bool // whether a unit waits for its retry
}

// nodeProgress is the outcome of all visits of a node.
type nodeProgress struct {
	id            nodeID
	first         int // order of the first visit
	visits        int
	units, failed int
	attempts      int
	duration      time.Duration
	state         string // state of the last visit
}

// NewProgress returns the progress of a task without events.
func NewProgress() *Progress {
	return &Progress{State: "pending", Active: map[stepVisit]*StepProgress{}, nodes: map[nodeID]*nodeProgress{}}
}

func (p *Progress) hasEnded() bool { return !p.Ended.IsZero() }

// ApplyEvent applies an event. Unknown kinds are ignored.
func (p *Progress) ApplyEvent(e *wire.Event) {
	at := stepVisit{nodeID{e.Scope, e.Node}, e.Visit}
	switch e.Type {
	case "task_created":
		p.State, p.Began = "running", e.At.Time
	case "task_paused":
		p.State = "paused"
	case "task_resumed":
		p.State = "running"
	case "cancel_requested":
		p.State = "canceling"
	case "task_closing":
		p.State = "closing"
		clear(p.Active)
	case "task_retried":
		p.State, p.err, p.Ended = "running", "", time.Time{}
	case "units_appended":
		if s := p.Active[at]; s != nil {
			s.total += e.Total
		}
	case "task_ended":
		p.State, p.err, p.Ended = e.State, e.Error, e.At.Time
		clear(p.Active)
	case "step_entered":
		p.Active[at] = &StepProgress{at: at, order: p.nextOrder(), entered: e.At.Time, total: max(e.Total, 1), done: e.ReusedUnits}
	case "scope_retried":
		maps.DeleteFunc(p.Active, func(v stepVisit, _ *StepProgress) bool {
			return v.scope == e.Scope || strings.HasPrefix(v.scope, e.Scope+"/")
		})
	case "step_ended":
		p.stepEnded(at, e)
	case "attempts_dispatched", "attempt_claimed", "attempt_ended":
		if s := p.Active[at]; s != nil {
			s.applyAttempt(e)
		}
	}
}

// nextOrder numbers the steps in the order in which they are entered, because many are entered at
// the same time.
func (p *Progress) nextOrder() int {
	p.entered++
	return p.entered
}

func (s *StepProgress) applyAttempt(e *wire.Event) {
	switch e.Type {
	case "attempts_dispatched":
		s.attempt, s.retry = e.Attempt, false
		s.attempts += max(e.Total, 1)
	case "attempt_claimed":
		s.worker = e.Worker
	case "attempt_ended":
		s.retry = !e.DueAt.IsZero()
		if s.retry || e.State == "canceled" {
			return
		}
		s.done++
		if e.State != "ok" {
			s.failed++
		}
	}
}

func (p *Progress) stepEnded(at stepVisit, e *wire.Event) {
	p.Steps++
	if e.Reason == "ignored" {
		p.followed++
	}
	n := p.nodes[at.nodeID]
	if n == nil {
		n = &nodeProgress{id: at.nodeID}
		p.nodes[at.nodeID] = n
	}
	n.visits++
	n.state = e.State + console.AddPrefix(": ", e.Reason)
	if e.State == "failed" {
		p.failed = at.nodeID
	}
	s := p.Active[at]
	if n.visits == 1 && s == nil {
		n.first = p.nextOrder()
	}
	if s != nil {
		if n.visits == 1 {
			n.first = s.order
		}
		n.units, n.failed = n.units+max(s.total, s.done), n.failed+s.failed
		n.attempts += s.attempts
		n.duration += e.At.Sub(s.entered)
		p.last = s
		delete(p.Active, at)
	}
}

// ListActive returns the active steps in the order in which they were entered.
func (p *Progress) ListActive() []*StepProgress {
	return slices.SortedFunc(maps.Values(p.Active), func(a, b *StepProgress) int {
		return cmp.Compare(a.order, b.order)
	})
}

// nodeTable returns a table with the outcome of each node.
func (p *Progress) nodeTable() (header []string, rows [][]string) {
	all := slices.SortedFunc(maps.Values(p.nodes), func(a, b *nodeProgress) int {
		return cmp.Compare(a.first, b.first)
	})
	for _, n := range all {
		rows = append(rows, []string{n.id.String(), n.state, fmt.Sprint(n.visits),
			fmt.Sprint(n.units), fmt.Sprint(n.failed), fmt.Sprint(n.attempts), console.FormatDuration(n.duration)})
	}
	return []string{"NODE", "STATE", "VISITS", "UNITS", "FAILED", "ATTEMPTS", "DURATION"}, rows
}

func (id nodeID) String() string { return console.JoinNode(id.scope, id.node) }

// StatusLine describes the progress of an active step.
func (s *StepProgress) StatusLine(now time.Time) string {
	line := s.at.String()
	if s.at.n > 1 {
		line += fmt.Sprintf(" #%d", s.at.n)
	}
	if s.total > 1 {
		line += fmt.Sprintf("  %d/%d", s.done, s.total) + failedUnits(s.failed)
	}
	line += "  " + console.FormatDuration(now.Sub(s.entered))
	switch {
	case s.retry:
		line += fmt.Sprintf("  retrying after attempt %d", s.attempt)
	case s.worker != "":
		line += "  on " + s.worker
	}
	return console.SanitizeText(line)
}

// logLine returns a line of a log for an applied event; "" if the event is too minor.
func (p *Progress) logLine(e *wire.Event) string {
	where := nodeID{e.Scope, e.Node}.String()
	switch e.Type {
	case "task_created":
		return "task started"
	case "task_paused", "task_resumed", "task_retried":
		return "task " + e.Type[len("task_"):]
	case "task_ended":
		return "task " + e.State + console.AddPrefix(": ", e.Error)
	case "cancel_requested":
		return "task canceling: running attempts finish"
	case "task_closing":
		return "task " + e.State + ", " + closingText(e) + console.AddPrefix(": ", e.Error)
	case "scope_retried":
		return e.Scope + ": failed steps are retried"
	case "signal_received":
		return "signal " + e.Key + console.AddPrefix(" by ", e.SentBy)
	case "units_appended":
		return fmt.Sprintf("%s: %d units appended", where, e.Total)
	case "step_entered":
		return where + ": started" + unitsText(e)
	case "step_ended":
		return where + ": " + e.State + p.failedUnitsNote(e) + console.AddPrefix(", ",
			e.Reason) + console.AddPrefix(", action ", e.Action) + console.AddPrefix(", next ",
			e.Next) + console.AddPrefix(": ", e.Error)
	case "attempt_claimed":
		// single units of many are too minor
		if s := p.Active[stepVisit{nodeID{e.Scope, e.Node}, e.Visit}]; s != nil && s.total > 1 {
			return ""
		}
		return where + ": running on " + e.Worker
	case "attempt_ended":
		if e.Error != "" {
			return fmt.Sprintf("%s: attempt %d of unit %d failed: %s", where, e.Attempt, e.Unit, e.Error)
		}
	}
	return ""
}

// failedUnitsNote returns a note if some units of a step with many units have failed. The step has
// just ended.
func (p *Progress) failedUnitsNote(e *wire.Event) string {
	s := p.last
	if s == nil || s.at != (stepVisit{nodeID{e.Scope, e.Node}, e.Visit}) || s.total < 2 || s.failed == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d of %d units failed", s.failed, s.total)
}

// closingText describes the work of a task before its end: undoing units, or only running its
// finally.
func closingText(e *wire.Event) string {
	switch e.Total {
	case 0:
		return "its finally step runs"
	case 1:
		return "compensating 1 completed unit"
	}
	return fmt.Sprintf("compensating %d completed units", e.Total)
}

// unitsText describes the units of a step that starts.
func unitsText(e *wire.Event) (text string) {
	if e.Total > 1 {
		text = fmt.Sprintf(" with %d units", e.Total)
	}
	switch {
	case e.ReusedUnits > 0 && e.Total > 0:
		text += fmt.Sprintf(", %d kept", e.ReusedUnits)
	case e.ReusedUnits > 0:
		text = " at the same place"
	}
	return text
}
