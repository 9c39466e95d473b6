package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// finishUnits finishes what nobody else carries out, and adds to it before.
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

// finishCommand is what somebody does about a unit that nobody carries out: it is finished, but
// before that its fanout may grow.
func (p *flowScenario) finishCommand(a flow.Address, appended map[string]bool) flow.Command {
	if n := p.appends[a.Node[strings.LastIndexByte(a.Node, '/')+1:]]; n > 0 && !appended[a.Node] {
		appended[a.Node] = true // a retry of the task brings them back
		items := make([]json.RawMessage, n)
		for i := range items {
			items[i] = encodeValue(object{"added": i})
		}
		return flow.Append{Address: flow.Address{Node: a.Node, Visit: a.Visit}, Items: items}
	}
	return flow.Report{Address: a, Output: directOutput(a.Unit), Direct: true}
}

// directUnits are those of the root that nobody carries out and that are not finished, also where
// it is not their turn yet.
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

// finishLeftovers finishes what a gentle cancel has left over: that is recorded, and nothing begins
// because of it.
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
		u.w.failRun("task %s is %s at %d, it ended at %d; %v of %v were completed and are not", u.task, s.Status, s.EndedAt, ended, left, units)
	}
}

// retryTask has a failed task go on, and waits for its end again.
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
