package tasks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

func TestProgressFoldsEvents(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) wire.Time { return wire.Time{Time: begin.Add(time.Duration(ms) * time.Millisecond)} }
	mail := func(unit int) wire.Place { return wire.Place{Node: "mail", Visit: 1, Unit: unit, Attempt: 1} }
	p := NewProgress()
	var told []string
	see := func(events ...wire.Event) {
		for _, e := range events {
			p.ApplyEvent(&e)
			if line := p.logLine(&e); line != "" {
				told = append(told, line)
			}
		}
	}
	lines := func(ms int) (all []string) {
		for _, s := range p.ListActive() {
			all = append(all, s.StatusLine(at(ms).Time))
		}
		return all
	}

	see(wire.Event{Type: "task_created", At: at(0)},
		wire.Event{Type: "step_entered", At: at(0), Place: wire.Place{Node: "mail", Visit: 1}, Total: 3},
		wire.Event{Type: "attempts_dispatched", At: at(0), Place: mail(0), Total: 3},
		wire.Event{Type: "attempt_claimed", At: at(50), Place: mail(0), Worker: "w1"},
		wire.Event{Type: "attempt_ended", At: at(100), Place: mail(0), State: "ok"},
		wire.Event{Type: "attempt_ended", At: at(120), Place: mail(1), State: "error", Error: "no\x1b[2J route"})
	require.Equal(t, []string{"mail  2/3 (1 failed)  1.5s  on w1"}, lines(1500))

	see(wire.Event{Type: "attempt_ended", At: at(200), Place: mail(2), State: "error", Error: "busy", DueAt: at(900)})
	require.Equal(t, []string{"mail  2/3 (1 failed)  1.5s  retrying after attempt 1"}, lines(1500))

	see(wire.Event{Type: "attempt_ended", At: at(1000), Place: mail(2), State: "ok"},
		wire.Event{Type: "step_ended", At: at(1000), Place: wire.Place{Node: "mail", Visit: 1}, State: "completed", Next: "end"},
		wire.Event{Type: "a_kind_of_later_releases", At: at(1000)},
		wire.Event{Type: "task_ended", At: at(1001), State: "completed"})
	require.Empty(t, lines(1001))
	require.True(t, p.hasEnded())
	_, rows := p.nodeTable()
	require.Equal(t, [][]string{{"mail", "completed", "1", "3", "1", "3", "1.0s"}}, rows)
	require.Equal(t, []string{"task started", "mail: started with 3 units",
		"mail: attempt 1 of unit 1 failed: no\x1b[2J route", "mail: attempt 1 of unit 2 failed: busy",
		"mail: completed with 1 of 3 units failed, next end", "task completed"}, told)
	require.Equal(t, "no [2J route", console.SanitizeText("no\x1b[2J route"), "what others wrote does nothing to a terminal")
}

func TestProgressMentionsUndoingOnlyIfUnitsAreUndone(t *testing.T) {
	for line, e := range map[string]wire.Event{
		"task completed, its finally step runs":                {State: "completed"},
		"task failed, its finally step runs: boom":             {State: "failed", Error: "boom"},
		"task canceled, compensating 1 completed unit":         {State: "canceled", Total: 1},
		"task failed, compensating 3 completed units: no card": {State: "failed", Total: 3, Error: "no card"},
	} {
		e.Type = "task_closing"
		require.Equal(t, line, NewProgress().logLine(&e))
	}
}

func TestProgressIsInTheOrderOfTheRun(t *testing.T) {
	same := wire.Time{Time: time.Unix(1, 0)} // like all steps without work
	p := NewProgress()
	for _, node := range []string{"reserve", "charge", "apologize", "check"} {
		place := wire.Place{Node: node, Visit: 1}
		p.ApplyEvent(&wire.Event{Type: "step_entered", At: same, Place: place})
		if node == "charge" {
			claimed := wire.Event{Type: "attempt_claimed", At: same, Place: place, Worker: "w1"}
			p.ApplyEvent(&claimed)
			require.Equal(t, "charge: running on w1", p.logLine(&claimed))
		}
		p.ApplyEvent(&wire.Event{Type: "step_ended", At: same, Place: place,
			State: map[bool]string{true: "failed", false: "completed"}[node == "charge"]})
	}
	p.ApplyEvent(&wire.Event{Type: "step_ended", At: same, Place: wire.Place{Node: "archive", Visit: 0}, State: "skipped"})
	_, rows := p.nodeTable()
	var order []string
	for _, row := range rows {
		order = append(order, row[0])
	}
	require.Equal(t, []string{"reserve", "charge", "apologize", "check", "archive"}, order)
	require.Equal(t, "charge", p.failed.String())
}

func TestProgressOfWhatIsTriedAgain(t *testing.T) {
	in := func(scope, node string, visit int) wire.Place {
		return wire.Place{Scope: scope, Node: node, Visit: visit}
	}
	p := NewProgress()
	p.ApplyEvent(&wire.Event{Type: "step_entered", Place: in("", "s", 1)})
	p.ApplyEvent(&wire.Event{Type: "step_entered", Place: in("s#1", "mail", 1), Total: 3})
	again := wire.Event{Type: "scope_retried", Place: wire.Place{Scope: "s#1"}}
	p.ApplyEvent(&again)
	require.Len(t, p.ListActive(), 1, "what was cut short in the scope is over")
	require.Equal(t, "s#1: failed steps are retried", p.logLine(&again))

	entered := wire.Event{Type: "step_entered", Place: in("s#1", "mail", 2), Total: 3, ReusedUnits: 2}
	p.ApplyEvent(&entered)
	require.Equal(t, 2, p.Active[stepVisit{nodeID{"s#1", "mail"}, 2}].done)
	require.Equal(t, "s#1/mail: started with 3 units, 2 kept", p.logLine(&entered))
}
