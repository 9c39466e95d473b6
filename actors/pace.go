package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// stepsPerSecond is how many steps without jobs, such as conditions, a task may run per second. A
// loop of such steps would otherwise take all processor time. The first second of steps is a burst
// without a pause.
const stepsPerSecond = 10_000

// effortOfStep is how many units of evaluation effort count as one additional step.
const effortOfStep = 500

// stepPace limits how fast a task runs steps without jobs.
type stepPace struct {
	ahead int64 // microseconds by which the task is ahead of its pace
	at    int64 // time of the last change of ahead, in Unix milliseconds
}

// addSteps adds finished steps to the pace.
func (p *stepPace) addSteps(now int64, steps int) {
	p.ahead = max(p.ahead-(now-p.at)*1000, 0) + int64(steps)*1_000_000/stepsPerSecond
	p.at = now
}

// waitTime returns how long the next steps must wait.
func (p *stepPace) waitTime(now int64) time.Duration {
	ahead := p.ahead - (now-p.at)*1000
	return max(time.Duration(ahead)*time.Microsecond-time.Second, 0)
}

// recordCut keeps the remaining part of a decision that was cut because it was too long.
func (t taskTurns) recordCut(d flow.Decision, steps int) {
	if d.More == nil {
		return
	}
	t.pace.addSteps(t.m.nowMillis(), steps)
	if !slices.Contains(t.cutCommands, d.More) {
		t.cutCommands = append(t.cutCommands, d.More)
	}
}

// resumeCutLater schedules the remaining parts of cut decisions. They continue after their results
// are stored, so that unstored results do not pile up. Messages in the mailbox and the pace of the
// task come first.
func (t taskTurns) resumeCutLater(c actor.Context) {
	if len(t.cutCommands) == 0 || t.cutScheduled {
		return
	}
	t.cutScheduled, t.cutAt = true, t.m.nowMillis()
	t.resumeCutAfter(c, t.pace.waitTime(t.cutAt))
}

func (t taskTurns) resumeCutAfter(c actor.Context, wait time.Duration) {
	m, self, gen := t.m, c.Self(), t.gen
	send := func() { m.sendMessage(self, resumeCut{gen}) }
	if wait > 0 {
		m.work.After(wait, send)
		return
	}
	m.cfg.Host.Dispatcher.Schedule(send)
}

func (t taskTurns) resumeCut(c actor.Context, m resumeCut) {
	if m.gen != t.gen || t.loading || !t.cutScheduled {
		return
	}
	if t.isThrottled() {
		t.resumeCutAfter(c, backlogRecheck)
		return
	}
	t.cutScheduled = false
	for range len(t.cutCommands) { // a command stays in the list until it is decided
		cmd := t.cutCommands[0]
		t.cutCommands = t.cutCommands[1:]
		t.decideCommand(c, &taskCommand{command: cmd})
	}
}

// dropCut drops the remaining parts that the next load of the task repeats. The task is then stored
// as unfinished, so that it is loaded again.
func (t taskTurns) dropCut() {
	all := len(t.cutCommands)
	t.cutCommands = slices.DeleteFunc(t.cutCommands, func(cmd flow.Command) bool {
		_, leaving := cmd.(flow.Leave)
		return !leaving
	})
	t.unfinished = t.unfinished || len(t.cutCommands) < all
	t.cutScheduled = t.cutScheduled && len(t.cutCommands) > 0
}
