package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// stepsPerSecond is how many steps a task may run in a second in which nobody has any work, beyond a first burst of
// as many. A loop of them would otherwise take all the time there is.
const stepsPerSecond = 10_000

// effortOfStep is how many units of work of its conditions count as one more step.
const effortOfStep = 500

// pace is how fast a task runs steps without work.
type pace struct {
	ahead int64 // microseconds for which it has run steps before their time
	at    int64 // when that was so, in Unix milliseconds
}

// spend counts steps that were run.
func (p *pace) spend(now int64, steps int) {
	p.ahead = max(p.ahead-(now-p.at)*1000, 0) + int64(steps)*1_000_000/stepsPerSecond
	p.at = now
}

// wait is how long the next steps have to wait.
func (p *pace) wait(now int64) time.Duration {
	ahead := p.ahead - (now-p.at)*1000
	return max(time.Duration(ahead)*time.Microsecond-time.Second, 0)
}

// cut notes what goes on with a decision that was cut because of its length.
func (t *task) cut(d flow.Decision, steps int) {
	if d.More == nil {
		return
	}
	t.pace.spend(t.m.now(), steps)
	if !slices.Contains(t.more, d.More) {
		t.more = append(t.more, d.More)
	}
}

// goOnLater has cut decisions continued: after what they have led to is stored, so that it does not pile up, after
// what other actors have been sent by then, and not before the task's pace allows it.
func (t *task) goOnLater(c actor.Context) {
	if len(t.more) == 0 || t.going {
		return
	}
	t.going, t.cutAt = true, t.m.now()
	t.goOnAfter(c, t.pace.wait(t.cutAt))
}

func (t *task) goOnAfter(c actor.Context, wait time.Duration) {
	m, self, gen := t.m, c.Self(), t.gen
	send := func() { m.tell(self, proceed{gen}) }
	if wait > 0 {
		m.cfg.Host.Clock.AfterFunc(wait, send)
		return
	}
	m.cfg.Host.Dispatcher.Schedule(send)
}

func (t *task) proceed(c actor.Context, m proceed) {
	if m.gen != t.gen || t.loading || !t.going {
		return
	}
	if t.heldBack() {
		t.goOnAfter(c, backlogAgain)
		return
	}
	t.going = false
	for range len(t.more) { // what is still to be decided counts until it is
		cmd := t.more[0]
		t.more = t.more[1:]
		t.decide(c, &command{cmd: cmd})
	}
}

// leaveCut drops what goes on by itself when the task is loaded the next time. Until then the task has something to
// do, whatever its state looks like.
func (t *task) leaveCut() {
	all := len(t.more)
	t.more = slices.DeleteFunc(t.more, func(cmd flow.Command) bool {
		_, leaving := cmd.(flow.Leave)
		return !leaving
	})
	t.unfinished = t.unfinished || len(t.more) < all
	t.going = t.going && len(t.more) > 0
}
