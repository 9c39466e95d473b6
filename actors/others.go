package actors

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Others reaches what the other members of a cluster own and carry. Its methods are called by
// actors: but for Do and Carry, they return at once.
type Others interface {
	// Do carries out orders at whoever owns their tasks now, here or elsewhere, until they are
	// answered or ctx ends, and answers each in its place. Each may be repeated. That somebody is
	// busy answers a claim, and nothing else.
	Do(ctx context.Context, orders engine.Orders) engine.Outcomes
	// Owner names the incarnation that owns a task as far as is known here; "" = nobody, for the
	// moment.
	Owner(task string) string
	// Carry has another member, by its incarnation, carry out jobs, or let go of some. Without an
	// error that is its business from now on; with one it is not, as far as that can be known. It
	// may be repeated.
	Carry(ctx context.Context, carrier string, errands engine.Errands) error
	// Credits tells all others for which jobs workers are attached to this member. It may get lost.
	Credits(c *engine.Credits)
	// Alive are the incarnations of the other members that live.
	Alive() []string
	// Stir tells the owners of keys that something has changed about them. It may get lost.
	Stir(keys engine.Keys)
	// Wanted tells the members on which pollers wait that there are jobs which nobody here has
	// waited for. It may get lost.
	Wanted(jobs []engine.Offer)
}

// Messages to the tasks actor about who owns what.
type (
	shardsGained struct{ shards []int }
	loseShards   struct {
		shards []int
		done   func() // called once nothing of them is in memory
	}
	// memberGone says that a member is gone: what it carried is taken over.
	memberGone struct{ incarnation string }
)

// Gain makes the member the owner of shards from now on: their unfinished and due tasks are taken
// up.
func (m *Member) Gain(shards []int) {
	if m.owned.ownsAll || len(shards) == 0 {
		return
	}
	shards = slices.Clone(shards)
	m.sendMessage(m.tasks, shardsGained{shards})
	m.runBackground(func() { m.wakeDue(shards) })
	m.limiter.enqueueShards(shards)
	if m.cfg.Gained != nil {
		m.cfg.Gained()
	}
}

// Shards are those that the member owns, nil = all; a hint, since they may change at any time.
func (m *Member) Shards() persistence.ShardSet { return m.owned.ownedShards() }

// Lose hands shards over: no more commands are taken for their tasks (flow.Moved), which go to rest
// as soon as what they have decided is stored. What this member carries for them goes on, and
// reports to whoever has them then. When it is answered without an error none of them is in memory,
// and nothing of theirs is on its way to the store. After an error it may be asked again, or Gain
// gives them back.
func (m *Member) Lose(ctx context.Context, shards []int) error {
	if m.owned.ownsAll {
		return flow.Errorf(flow.Conflict, "the member is alone on its store: there is nobody to hand its tasks to")
	}
	done := make(chan struct{}, 1)
	m.sendMessage(m.tasks, loseShards{slices.Clone(shards), func() { done <- struct{}{} }})
	if _, err := answerOf(ctx, m, done, nil); err != nil {
		return err
	}
	for m.committer.isWritingFor(shards) || m.jobForwarder.isSendingFor(shards) { // with what an actor has sent that crashed, or jobs that were given away
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !m.sleepFor(restRecheck) {
			return errLeaving
		}
	}
	return nil
}

// Gone says that another member has left in order, or was fenced: what it carried for tasks of this
// one is taken over.
func (m *Member) Gone(incarnation string, left bool) {
	m.forgetGone()
	m.goneMu.Lock()
	m.goneMembers[incarnation] = flow.Departure{Member: incarnation, At: m.nowMillis(), Left: left}
	m.goneMu.Unlock()
	m.sendMessage(m.tasks, memberGone{incarnation})
	m.sendMessage(m.sessions, rescanJobs{})
	if r := m.sharingRelay(); r != nil {
		r.Gone(incarnation)
	}
}

// forgetGone forgets those who went long ago. Nobody waits for their workers any more, and no view
// calls them alive.
func (m *Member) forgetGone() {
	now, alive := m.nowMillis(), m.cfg.Others.Alive()
	m.goneMu.Lock()
	defer m.goneMu.Unlock()
	maps.DeleteFunc(m.goneMembers, func(incarnation string, d flow.Departure) bool {
		return now > d.At+m.returnGrace().Milliseconds()+goneFor && !slices.Contains(alive, incarnation)
	})
}

// goneFor is for how long, in milliseconds, it is remembered that a member has gone, after the time
// for which its workers are waited for.
const goneFor = 60_000

// aliveMembers are the other members whose jobs go on when this one takes up a task. Who was said
// to be gone is not alive, whatever the view of the cluster says by then.
func (m *Member) aliveMembers() []string {
	if m.cfg.Others == nil {
		return nil
	}
	m.goneMu.Lock()
	defer m.goneMu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.cfg.Others.Alive()), func(incarnation string) bool { return m.goneMembers[incarnation].Member != "" })
}

// isMemberAlive reports whether another member does.
func (m *Member) isMemberAlive(incarnation string) bool {
	return slices.Contains(m.aliveMembers(), incarnation)
}

// Carry has this member carry out jobs of other members' tasks, or let go of some. What it makes of
// them it reports to whoever has the tasks, also that it does not carry out one after all. After an
// error it does nothing with them: the tasks may move, and be done with the jobs, before it would
// come to them.
func (m *Member) Carry(ctx context.Context, errands engine.Errands) error {
	if err := m.checkAvailable(); err != nil && !m.stopping.Load() {
		return err
	}
	heard, turn := make(chan struct{}, 1), &atomic.Bool{}
	m.sendMessage(m.sessions, carryForeign{slices.Clone(errands), turn, func() { heard <- struct{}{} }})
	_, err := answerOf(ctx, m, heard, nil)
	if err != nil && !turn.CompareAndSwap(false, true) {
		return nil // they were taken meanwhile
	}
	return err
}

// Credited tells for which jobs workers are attached to another member. Of one that does not live,
// as far as is known, nothing is believed: what is given to it might be taken for lost.
func (m *Member) Credited(c *engine.Credits) {
	r := m.sharingRelay()
	if r == nil || !m.isMemberAlive(c.Member) {
		return
	}
	r.Credited(c)
	if !m.isMemberAlive(c.Member) { // it was said to be gone meanwhile, which the relay may have heard before
		r.Gone(c.Member)
	}
}

// sharingRelay is the relay if it shares jobs with those of others.
func (m *Member) sharingRelay() Sharing {
	r, _ := m.cfg.Relay.(Sharing)
	if m.cfg.Others == nil {
		return nil
	}
	return r
}

// Heard takes note of what another member tells.
func (m *Member) Heard(news engine.News) {
	if m.cfg.Heard != nil {
		m.cfg.Heard(news)
	}
}

// Offered tells of jobs of other members' tasks that pollers here may have.
func (m *Member) Offered(jobs []engine.Offer) {
	m.sendMessage(m.sessions, jobsOffered{slices.Clone(jobs)})
}
