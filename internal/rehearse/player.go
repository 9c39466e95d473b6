package rehearse

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Run plays without any misfortune.
func Run(p *Play) *Story { return play(p, listed(nil)) }

// Seed plays with the misfortunes that a seed draws.
func Seed(p *Play, seed uint64) *Story { return play(p, seeded(seed, p.Kinds)) }

// Under plays with the misfortunes of a schedule, as far as there is what they strike.
func Under(p *Play, s Schedule) *Story { return play(p, listed(s)) }

// player goes through one story.
type player struct {
	*Play
	story    *Story
	state    *flow.State
	env      flow.Env
	chance   *chance
	answer   Answerer
	queue    timeline
	serial   int
	made     int // decisions
	life     int // of the member: what it carried in an earlier one is lost
	calls    map[flow.Address]*Call
	holds    map[flow.Address]int64 // when whoever has claimed a job reports; 0 = never
	down     map[flow.Address]bool  // units that nobody can carry out any more
	retries  int                    // acts to come that take back the task's end
	waiting  []*Act
	patient  []*Act         // that are done as soon as what they are about waits
	answered map[string]int // how many waits of that name there have been
	seen     map[flow.Address]bool

	delivered map[flow.Address]int // how often a job was given to somebody
}

func play(p *Play, c *chance) *Story {
	r := &player{Play: p, chance: c, story: &Story{}, env: flow.Env{Now: epoch, Limits: p.Limits, Member: "member-1"}, calls: map[flow.Address]*Call{}, holds: map[flow.Address]int64{},
		down: map[flow.Address]bool{}, answered: map[string]int{}, seen: map[flow.Address]bool{}, delivered: map[flow.Address]int{}, answer: func(c *Call) Answer { return Answer{Output: c.Input} }}
	if p.Answers != nil {
		r.answer = p.Answers()
	}
	r.state = flow.NewState("rehearsal", p.Plan)
	if err := r.do(flow.Start{Version: "rehearsed", Params: p.Params}); err != nil {
		r.story.Err = fmt.Errorf("the task cannot be started: %w", err)
	} else {
		r.expect()
		r.all()
	}
	r.finish()
	return r.story
}

// all goes on until nothing can happen any more.
func (r *player) all() {
	for len(r.queue) > 0 && r.story.Err == nil && (!r.state.Status.Ended() || r.retries > 0) {
		next := r.queue[0]
		if r.Until > 0 && next.at > epoch+r.Until.Milliseconds() {
			r.story.Left = true
			r.env.Now = epoch + r.Until.Milliseconds()
			return
		}
		heap.Pop(&r.queue)
		r.env.Now = max(r.env.Now, next.at)
		next.f()
	}
}

func (r *player) finish() {
	r.story.State, r.story.Took = r.state, r.story.Since(r.env.Now)
	if r.state.EndedAt > 0 {
		r.story.Took = r.story.Since(r.state.EndedAt)
	}
	for i := range r.Acts {
		if a := &r.Acts[i]; a.Waiting == "" && !r.did(a) {
			r.story.Undone = append(r.story.Undone, a)
		}
	}
	for _, a := range r.waiting {
		if !r.did(a) {
			r.story.Undone = append(r.story.Undone, a)
		}
	}
}

func (r *player) did(a *Act) bool {
	for i := range r.story.Done {
		if r.story.Done[i].Act == a {
			return true
		}
	}
	return false
}

// now is how long the task has run.
func (r *player) now() time.Duration { return r.story.Since(r.env.Now) }

// do has a command decided, and all that follows from it at once.
func (r *player) do(c flow.Command) error {
	for c != nil {
		if r.made++; r.made > MaxDecisions {
			r.story.Err = fmt.Errorf("the task has not ended after %d decisions, at %s: is there a loop without an end?", MaxDecisions, Span(r.now()))
			return r.story.Err
		}
		d, err := flow.Decide(r.state, c, r.env)
		if err != nil {
			return err
		}
		r.story.Events = append(r.story.Events, d.Events...)
		r.owe(d.Effects)
		c = d.More
	}
	r.notice()
	return nil
}

// owe takes on what the world has to do.
func (r *player) owe(effects []flow.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case flow.Dispatch:
			r.after(0, func() { r.take(e.Job) })
		case flow.Reclaim:
			if _, begun := r.holds[e.Job.Address]; !begun {
				r.after(0, func() { _ = r.do(flow.Report{Address: e.Job.Address, Lost: true, Unbegun: true, Given: e.Job.Given}) })
			}
		case flow.Ask: // one task alone gets whatever it asks for
			r.after(0, func() { _ = r.do(flow.Granted{Address: e.Address, Key: e.Key}) })
		case flow.Track: // what is begun outside ends well there
			for i := range e.Jobs {
				r.after(0, func() { _ = r.do(flow.ExternalEnded{Address: e.Address, Index: i}) })
			}
		case flow.Alarm:
			r.alarm(e)
		}
	}
}

func (r *player) alarm(a flow.Alarm) {
	r.serial++
	heap.Push(&r.queue, entry{at: max(a.At, r.env.Now), serial: r.serial, alarm: &a, f: func() { r.ring(a) }})
}

// ring is what time brings. A worker that lives holds its claim until it reports.
func (r *player) ring(a flow.Alarm) {
	if a.Kind != flow.AlarmClaim {
		_ = r.do(flow.Ring{Alarm: a})
		return
	}
	if until := r.holds[a.Address]; until > r.env.Now && r.state.Awaits(a) {
		_ = r.do(flow.Extend{Address: a.Address, MS: until - r.env.Now + 1000})
		return
	}
	_ = r.do(flow.Lapse{Alarm: a, Visibility: visibility.Milliseconds()})
}

// after has something done in a while.
func (r *player) after(d time.Duration, f func()) {
	r.serial++
	heap.Push(&r.queue, entry{at: r.env.Now + d.Milliseconds(), serial: r.serial, f: f})
}

// restart is the end of the member, and the next one: what is known is what the journal says, and what its carriers had is taken over.
func (r *player) restart() {
	r.life++
	r.env.Member = fmt.Sprint("member-", r.life+1)
	s := flow.NewState(r.state.Task, r.Plan)
	for i := range r.story.Events {
		flow.Evolve(s, &r.story.Events[i])
	}
	r.state = s
	r.owe(flow.OutstandingTo(s, r.env.Member))
	_ = r.do(flow.Recover{Since: r.env.Now, Visibility: visibility.Milliseconds()})
}

// struck notes a misfortune.
func (r *player) struck(kind FaultKind, at string, by time.Duration) {
	r.story.Struck = append(r.story.Struck, Strike{Fault{kind, at, by}, r.now(), len(r.story.Events)})
}

// entry is something that happens at a time.
type entry struct {
	at     int64
	serial int
	alarm  *flow.Alarm // nil = no alarm
	f      func()
}

// timeline is a heap by time; what is due at the same time happens in the order in which it was asked for.
type timeline []entry

func (t timeline) Len() int { return len(t) }
func (t timeline) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].serial < t[j].serial
}
func (t timeline) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(x any)   { *t = append(*t, x.(entry)) }
func (t *timeline) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = entry{}
	*t = old[:len(old)-1]
	return last
}
