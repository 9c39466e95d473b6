package rehearse

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Run runs a play without faults.
func Run(p *Play) *Story { return playStory(p, newScheduled(nil)) }

// Seed runs a play with the faults drawn by a seed.
func Seed(p *Play, seed uint64) *Story { return playStory(p, newSeeded(seed, p.Kinds)) }

// Under runs a play with the faults of a schedule, as far as their targets exist.
func Under(p *Play, s Schedule) *Story { return playStory(p, newScheduled(s)) }

// player runs a single story.
type player struct {
	*Play
	story        *Story
	state        *flow.State
	env          flow.Env
	chance       *faultSource
	answer       Answerer
	queue        timelineHeap
	serial       int
	decisions    int
	memberLife   int // number of the member; work carried by an earlier member is lost
	calls        map[flow.Address]*Call
	reportsAt    map[flow.Address]int64 // report time of each claimed job; 0 if never
	failedUnits  map[flow.Address]bool  // units that fail in all further attempts
	retries      int                    // number of pending acts that retry the ended task
	waiting      []*Act
	deferredActs []*Act         // acts that wait for their step
	answered     map[string]int // number of waits so far, by name
	seen         map[flow.Address]bool

	delivered map[flow.Address]int // number of deliveries of each job
}

func playStory(p *Play, c *faultSource) *Story {
	r := &player{Play: p, chance: c, story: &Story{},
		env:   flow.Env{Now: startEpoch, Limits: p.Limits, Member: "member-1"},
		calls: map[flow.Address]*Call{}, reportsAt: map[flow.Address]int64{},
		failedUnits: map[flow.Address]bool{}, answered: map[string]int{},
		seen: map[flow.Address]bool{}, delivered: map[flow.Address]int{},
		answer: func(c *Call) Answer { return Answer{Output: c.Input} }}
	if p.Answers != nil {
		r.answer = p.Answers()
	}
	r.state = flow.NewState("rehearsal", p.Plan)
	if err := r.decideCommand(flow.Start{Version: "rehearsed", Params: p.Params}); err != nil {
		r.story.Err = fmt.Errorf("the task cannot be started: %w", err)
	} else {
		r.scheduleActs()
		r.playAll()
	}
	r.finishStory()
	return r.story
}

// playAll runs until nothing can happen any longer.
func (r *player) playAll() {
	for len(r.queue) > 0 && r.story.Err == nil && (!r.state.Status.Ended() || r.retries > 0) {
		next := r.queue[0]
		if r.Until > 0 && next.at > startEpoch+r.Until.Milliseconds() {
			r.story.Left = true
			r.env.Now = startEpoch + r.Until.Milliseconds()
			return
		}
		heap.Pop(&r.queue)
		r.env.Now = max(r.env.Now, next.at)
		next.run()
	}
}

func (r *player) finishStory() {
	r.story.State, r.story.Took = r.state, r.story.Since(r.env.Now)
	if r.state.EndedAt > 0 {
		r.story.Took = r.story.Since(r.state.EndedAt)
	}
	for i := range r.Acts {
		if a := &r.Acts[i]; a.Waiting == "" && !r.wasDone(a) {
			r.story.Undone = append(r.story.Undone, a)
		}
	}
	for _, a := range r.waiting {
		if !r.wasDone(a) {
			r.story.Undone = append(r.story.Undone, a)
		}
	}
}

func (r *player) wasDone(a *Act) bool {
	for i := range r.story.Done {
		if r.story.Done[i].Act == a {
			return true
		}
	}
	return false
}

// elapsed returns how long the task has run.
func (r *player) elapsed() time.Duration { return r.story.Since(r.env.Now) }

// decideCommand decides a command and its immediate follow-ups.
func (r *player) decideCommand(c flow.Command) error {
	for c != nil {
		if r.decisions++; r.decisions > MaxDecisions {
			r.story.Err = fmt.Errorf("the task has not ended after %d decisions, at %s: is "+
				"there a loop without an end?", MaxDecisions, Span(r.elapsed()))
			return r.story.Err
		}
		d, err := flow.Decide(r.state, c, r.env)
		if err != nil {
			return err
		}
		r.story.Events = append(r.story.Events, d.Events...)
		r.queueEffects(d.Effects)
		c = d.More
	}
	r.noticeWaiting()
	return nil
}

// queueEffects schedules the effects of a decision.
func (r *player) queueEffects(effects []flow.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case flow.Dispatch:
			r.queueAfter(0, func() { r.takeJob(e.Job) })
		case flow.Reclaim:
			if _, begun := r.reportsAt[e.Job.Address]; !begun {
				r.queueAfter(0, func() {
					_ = r.decideCommand(flow.Report{Address: e.Job.Address, Lost: true, Unbegun: true, Given: e.Job.Given})
				})
			}
		case flow.Ask: // a single task gets every permit immediately
			r.queueAfter(0, func() { _ = r.decideCommand(flow.Granted{Address: e.Address, Key: e.Key}) })
		case flow.Track: // external work succeeds
			for i := range e.Jobs {
				r.queueAfter(0, func() { _ = r.decideCommand(flow.ExternalEnded{Address: e.Address, Index: i}) })
			}
		case flow.Alarm:
			r.queueAlarm(e)
		}
	}
}

func (r *player) queueAlarm(a flow.Alarm) {
	r.serial++
	heap.Push(&r.queue, timelineEntry{at: max(a.At, r.env.Now), serial: r.serial, alarm: &a, run: func() { r.fireAlarm(a) }})
}

// fireAlarm fires an alarm. A living worker keeps its claim until it reports.
func (r *player) fireAlarm(a flow.Alarm) {
	if a.Kind != flow.AlarmClaim {
		_ = r.decideCommand(flow.Ring{Alarm: a})
		return
	}
	if until := r.reportsAt[a.Address]; until > r.env.Now && r.state.Awaits(a) {
		_ = r.decideCommand(flow.Extend{Address: a.Address, MS: until - r.env.Now + 1000})
		return
	}
	_ = r.decideCommand(flow.Lapse{Alarm: a, Visibility: claimVisibility.Milliseconds()})
}

// queueAfter schedules f after d.
func (r *player) queueAfter(d time.Duration, f func()) {
	r.serial++
	heap.Push(&r.queue, timelineEntry{at: r.env.Now + d.Milliseconds(), serial: r.serial, run: f})
}

// restartMember replaces the member. The new member knows only the journal, and takes over the work
// of the old member.
func (r *player) restartMember() {
	r.memberLife++
	r.env.Member = fmt.Sprint("member-", r.memberLife+1)
	s := flow.NewState(r.state.Task, r.Plan)
	for i := range r.story.Events {
		flow.Evolve(s, &r.story.Events[i])
	}
	r.state = s
	r.queueEffects(flow.OutstandingTo(s, r.env.Member))
	_ = r.decideCommand(flow.Recover{Since: r.env.Now, Visibility: claimVisibility.Milliseconds()})
}

// recordStrike records a fault.
func (r *player) recordStrike(kind FaultKind, at string, by time.Duration) {
	r.story.Struck = append(r.story.Struck, Strike{Fault{kind, at, by}, r.elapsed(), len(r.story.Events)})
}

// timelineEntry is a scheduled event.
type timelineEntry struct {
	at     int64
	serial int
	alarm  *flow.Alarm // nil if it is no alarm
	run    func()
}

// timelineHeap is a heap by time. Events of equal time keep their order of insertion.
type timelineHeap []timelineEntry

func (t timelineHeap) Len() int { return len(t) }
func (t timelineHeap) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].serial < t[j].serial
}
func (t timelineHeap) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timelineHeap) Push(x any)   { *t = append(*t, x.(timelineEntry)) }
func (t *timelineHeap) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = timelineEntry{}
	*t = old[:len(old)-1]
	return last
}
