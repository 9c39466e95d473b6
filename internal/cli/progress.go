package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// taskProgress is the progress of a task, computed from its events.
type taskProgress struct {
	state    string // running, paused, completed, failed, canceled
	err      string
	began    time.Time
	ended    time.Time
	steps    int           // number of steps that have ended
	followed int           // ended steps that failed while their task went on
	failed   nodeID        // the last step that ended by failing
	last     *stepProgress // the last step that was entered and has ended
	// steps that were entered, or ended without being entered; gives them their order
	entered int
	active  map[stepVisit]*stepProgress
	nodes   map[nodeID]*nodeProgress
}

type nodeID struct{ scope, node string }

type stepVisit struct {
	nodeID
	n int
}

// stepProgress is a step under way.
type stepProgress struct {
	at           stepVisit
	order        int // among all steps
	entered      time.Time
	total        int // number of units
	done, failed int // failed units count as done, too
	attempt      int
	attempts     int // attempts that were started, of all units
	worker       string
	retry        bool // a unit waits for its retry
}

// nodeProgress is the outcome of all visits of a node.
type nodeProgress struct {
	id            nodeID
	first         int // order of its first visit
	visits        int
	units, failed int
	attempts      int
	duration      time.Duration
	state         string // of the last visit
}

func newProgress() *taskProgress {
	return &taskProgress{state: "pending", active: map[stepVisit]*stepProgress{}, nodes: map[nodeID]*nodeProgress{}}
}

func (p *taskProgress) hasEnded() bool { return !p.ended.IsZero() }

// applyEvent applies an event. Unknown kinds are ignored.
func (p *taskProgress) applyEvent(e *wire.Event) {
	at := stepVisit{nodeID{e.Scope, e.Node}, e.Visit}
	switch e.Type {
	case "task_created":
		p.state, p.began = "running", e.At.Time
	case "task_paused":
		p.state = "paused"
	case "task_resumed":
		p.state = "running"
	case "cancel_asked":
		p.state = "canceling"
	case "task_closing":
		p.state = "closing"
		clear(p.active)
	case "task_retried":
		p.state, p.err, p.ended = "running", "", time.Time{}
	case "units_appended":
		if s := p.active[at]; s != nil {
			s.total += e.Total
		}
	case "task_ended":
		p.state, p.err, p.ended = e.State, e.Error, e.At.Time
		clear(p.active)
	case "step_entered":
		p.active[at] = &stepProgress{at: at, order: p.nextOrder(), entered: e.At.Time, total: max(e.Total, 1), done: e.Kept}
	case "scope_retried":
		maps.DeleteFunc(p.active, func(v stepVisit, _ *stepProgress) bool {
			return v.scope == e.Scope || strings.HasPrefix(v.scope, e.Scope+"/")
		})
	case "step_ended":
		p.stepEnded(at, e)
	case "attempts_started", "attempt_claimed", "attempt_ended":
		if s := p.active[at]; s != nil {
			s.applyAttempt(e)
		}
	}
}

// nextOrder numbers the steps in the order in which they are entered, because many are entered at
// the same time.
func (p *taskProgress) nextOrder() int {
	p.entered++
	return p.entered
}

func (s *stepProgress) applyAttempt(e *wire.Event) {
	switch e.Type {
	case "attempts_started":
		s.attempt, s.retry = e.Attempt, false
		s.attempts += max(e.Total, 1)
	case "attempt_claimed":
		s.worker = e.Worker
	case "attempt_ended":
		s.retry = !e.Due.IsZero()
		if s.retry || e.State == "canceled" {
			return
		}
		s.done++
		if e.State != "ok" {
			s.failed++
		}
	}
}

func (p *taskProgress) stepEnded(at stepVisit, e *wire.Event) {
	p.steps++
	if e.Reason == "followed" {
		p.followed++
	}
	n := p.nodes[at.nodeID]
	if n == nil {
		n = &nodeProgress{id: at.nodeID}
		p.nodes[at.nodeID] = n
	}
	n.visits++
	n.state = e.State + withPrefix(": ", e.Reason)
	if e.State == "failed" {
		p.failed = at.nodeID
	}
	s := p.active[at]
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
		delete(p.active, at)
	}
}

// underWay returns the active steps in the order in which they were entered.
func (p *taskProgress) underWay() []*stepProgress {
	return slices.SortedFunc(maps.Values(p.active), func(a, b *stepProgress) int {
		return cmp.Compare(a.order, b.order)
	})
}

// nodeTable returns a table with the outcome of each node.
func (p *taskProgress) nodeTable() (header []string, rows [][]string) {
	all := slices.SortedFunc(maps.Values(p.nodes), func(a, b *nodeProgress) int {
		return cmp.Compare(a.first, b.first)
	})
	for _, n := range all {
		rows = append(rows, []string{n.id.String(), n.state, fmt.Sprint(n.visits),
			fmt.Sprint(n.units), fmt.Sprint(n.failed), fmt.Sprint(n.attempts), formatDuration(n.duration)})
	}
	return []string{"NODE", "STATE", "VISITS", "UNITS", "FAILED", "ATTEMPTS", "TIME"}, rows
}

func (id nodeID) String() string {
	if id.scope == "" {
		return id.node
	}
	return id.scope + "/" + id.node
}

// statusLine describes a step under way.
func (s *stepProgress) statusLine(now time.Time) string {
	line := s.at.String()
	if s.at.n > 1 {
		line += fmt.Sprintf(" #%d", s.at.n)
	}
	if s.total > 1 {
		line += fmt.Sprintf("  %d/%d", s.done, s.total) + failedUnits(s.failed)
	}
	line += "  " + formatDuration(now.Sub(s.entered))
	switch {
	case s.retry:
		line += fmt.Sprintf("  tried again after attempt %d", s.attempt)
	case s.worker != "":
		line += "  by " + s.worker
	}
	return sanitizeText(line)
}

// logLine returns a line of a log for an applied event; "" if the event is too minor.
func (p *taskProgress) logLine(e *wire.Event) string {
	where := nodeID{e.Scope, e.Node}.String()
	switch e.Type {
	case "task_created":
		return "task started"
	case "task_paused", "task_resumed", "task_retried":
		return "task " + e.Type[len("task_"):]
	case "task_ended":
		return "task " + e.State + withPrefix(": ", e.Error)
	case "cancel_asked":
		return "task canceled gently: what has begun goes on"
	case "task_closing":
		return "task " + e.State + ", " + closingText(e) + withPrefix(": ", e.Error)
	case "scope_retried":
		return e.Scope + ": what failed in it is tried again"
	case "signal_received":
		return "signal " + e.Key + withPrefix(" by ", e.By)
	case "units_appended":
		return fmt.Sprintf("%s: %d units appended", where, e.Total)
	case "step_entered":
		return where + ": started" + unitsText(e)
	case "step_ended":
		return where + ": " + e.State + p.failedUnitsNote(e) + withPrefix(", ",
			e.Reason) + withPrefix(", action ", e.Action) + withPrefix(", next ",
			e.Next) + withPrefix(": ", e.Error)
	case "attempt_claimed":
		// single units of many are too minor
		if s := p.active[stepVisit{nodeID{e.Scope, e.Node}, e.Visit}]; s != nil && s.total > 1 {
			return ""
		}
		return where + ": taken by " + e.Worker
	case "attempt_ended":
		if e.Error != "" {
			return fmt.Sprintf("%s: attempt %d of unit %d failed: %s", where, e.Attempt, e.Unit, e.Error)
		}
	}
	return ""
}

// failedUnitsNote returns a note if some units of a step with many units have failed. The step has
// just ended.
func (p *taskProgress) failedUnitsNote(e *wire.Event) string {
	s := p.last
	if s == nil || s.at != (stepVisit{nodeID{e.Scope, e.Node}, e.Visit}) || s.total < 2 || s.failed == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d of %d units failed", s.failed, s.total)
}

// closingText describes what a task does before its end: undo units, or only run its finally.
func closingText(e *wire.Event) string {
	switch e.Total {
	case 0:
		return "its finally runs"
	case 1:
		return "1 completed unit is undone"
	}
	return fmt.Sprintf("%d completed units are undone", e.Total)
}

// unitsText describes the units that a step starts with.
func unitsText(e *wire.Event) (text string) {
	if e.Total > 1 {
		text = fmt.Sprintf(" with %d units", e.Total)
	}
	switch {
	case e.Kept > 0 && e.Total > 0:
		text += fmt.Sprintf(", %d kept", e.Kept)
	case e.Kept > 0:
		text = " where it was"
	}
	return text
}

// withPrefix returns s with a prefix; "" if s is empty.
func withPrefix(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}
