package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// finishUnits completes direct units from outside, and appends units before their completion.
func (u *simUser) finishUnits() {
	appended := map[string]bool{}
	for !u.done {
		u.w.sleepFor(20*time.Millisecond + u.w.upTo(2*time.Second))
		t := u.check.tasks[u.task]
		if t == nil || u.done {
			continue
		}
		units := directUnits(t.state)
		if len(units) == 0 {
			continue
		}
		next := u.play.finishCommand(pickOne(u.w.rng, units...), appended)
		if err := u.sendUntilAnswered(next); err != nil && !t.ended && !u.cancels && !u.play.loose && !u.shrinks {
			u.w.failRun("%T of %s is refused: %v", next, u.task, err)
		}
	}
}

// finishCommand returns the command to complete a direct unit; before that it may extend the
// fanout.
func (p *flowScenario) finishCommand(a flow.Address, appended map[string]bool) flow.Command {
	if n := p.appends[a.Node[strings.LastIndexByte(a.Node, '/')+1:]]; n > 0 && !appended[a.Node] {
		appended[a.Node] = true // a retry of the task restores the original items
		items := make([]json.RawMessage, n)
		for i := range items {
			items[i] = encodeValue(object{"added": i})
		}
		return flow.Append{Address: flow.Address{Node: a.Node, Visit: a.Visit}, Items: items}
	}
	return flow.Report{Address: a, Output: directOutput(a.Unit), Direct: true}
}

// directUnits returns the unfinished direct units of the root scope, including units whose turn has
// not come yet.
func directUnits(s *flow.State) (units []flow.Address) {
	for _, st := range s.Root.Active() {
		for i := range st.Units {
			if u := &st.Units[i]; st.Node.Exec.Type == flow.ExecDirect && !u.Status.Ended() {
				a := st.Address()
				a.Unit, a.Attempt = i, int(u.Attempt)
				units = append(units, a)
			}
		}
	}
	return units
}

// finishLeftovers completes the units that a gentle cancel has left open. The completion is
// recorded and starts nothing.
func (u *simUser) finishLeftovers() {
	s := u.check.tasks[u.task].state
	if s.Status != flow.TaskCanceled || s.CancelAt == 0 || s.Closing != nil {
		return
	}
	ended := s.EndedAt
	units := slices.DeleteFunc(directUnits(s), func(a flow.Address) bool { return s.Root.Plan.Nodes[a.Node].Undo != "" })
	for _, a := range units {
		if err := u.sendUntilAnswered(flow.Report{Address: a, Output: directOutput(a.Unit), Direct: true}); err != nil {
			u.w.failRun("%s of %s is not completed after the cancel: %v", a, u.task, err)
		}
	}
	left := directUnits(s)
	missed := slices.ContainsFunc(units, func(a flow.Address) bool {
		return slices.ContainsFunc(left, func(b flow.Address) bool { return a.Node == b.Node && a.Unit == b.Unit })
	})
	if missed || s.Status != flow.TaskCanceled || s.EndedAt != ended {
		u.w.failRun("task %s is %s at %d, it ended at %d; %v of %v were completed and are not",
			u.task, s.Status, s.EndedAt, ended, left, units)
	}
}

// retryTask retries a failed task and waits for its end.
func (u *simUser) retryTask() {
	if t := u.check.tasks[u.task]; t.state.Status != flow.TaskFailed {
		return
	}
	if err := u.sendUntilAnswered(flow.RetryTask{}); err != nil {
		u.w.failRun("the retry of %s is refused: %v", u.task, err)
		return
	}
	u.awaitEnd()
}
