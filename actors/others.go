package actors

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Others reaches the tasks and jobs of the other members of a cluster. Actors call its methods,
// which return at once, except Do and Carry.
type Others interface {
	// Do carries out orders at the current owners of their tasks, here or on other members, until
	// they are answered or ctx ends. It returns the answer of each in order. Orders may be
	// delivered repeatedly. An owner that is busy counts as an answer for a claim only.
	Do(ctx context.Context, orders engine.Orders) engine.Outcomes
	// Owner returns the incarnation that owns a task, as far as is known here; "" if it has no
	// owner at the moment.
	Owner(task string) string
	// Carry asks another member, by its incarnation, to carry out jobs or to withdraw some. Without
	// an error that member is now responsible for them. With an error it is not, as far as can be
	// known. The request may be repeated.
	Carry(ctx context.Context, carrier string, errands engine.Errands) error
	// Credits announces to all members for which jobs workers are attached here. The notice may be
	// lost.
	Credits(c *engine.Credits)
	// Alive returns the incarnations of the other members that are alive.
	Alive() []string
	// Stir notifies the owners of keys that these have changed. The notice may be lost.
	Stir(keys engine.Keys)
	// Wanted announces jobs for which no poller waits here to the members with waiting pollers. The
	// notice may be lost.
	Wanted(jobs []engine.Offer)
}

// Messages to the tasks actor about ownership.
type (
	shardsGained struct{ shards []int }
	loseShards   struct {
		shards []int
		done   func() // called when none of their tasks is in memory
	}
	// memberGone reports that a member is gone: its jobs are recovered.
	memberGone struct{ incarnation string }
)

// Gain makes the member the owner of shards: it loads their unfinished and due tasks.
func (m *Member) Gain(shards []int) {
	if m.owned.OwnsAll() || len(shards) == 0 {
		return
	}
	shards = slices.Clone(shards)
	m.sendMessage(m.tasks, shardsGained{shards})
	m.work.Run(func() { m.waker.WakeDue(shards) })
	m.limiter.EnqueueShards(shards)
	if m.cfg.Gained != nil {
		m.cfg.Gained()
	}
}

// Shards returns the shards that the member owns, nil if all. The result is a hint, since they may
// change at any time.
func (m *Member) Shards() persistence.ShardSet { return m.owned.OwnedShards() }

// Lose hands shards over. Commands for their tasks are refused (flow.Moved), and the tasks rest
// after their decisions are stored. Jobs that this member carries out for them continue and report
// to the new owners. When Lose returns nil, none of the tasks is in memory and no writes for them
// are pending. After an error the caller may repeat Lose, or Gain returns the shards.
func (m *Member) Lose(ctx context.Context, shards []int) error {
	if m.owned.OwnsAll() {
		return flow.Errorf(flow.Conflict, "the member is alone on its store: there is no other member to take its tasks")
	}
	done := make(chan struct{}, 1)
	m.sendMessage(m.tasks, loseShards{slices.Clone(shards), func() { done <- struct{}{} }})
	if _, err := answerOf(ctx, m, done, nil); err != nil {
		return err
	}
	// with commits of an actor that crashed, or jobs in flight to other members
	for m.committer.IsWritingFor(shards) || m.jobForwarder.IsSendingFor(shards) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !m.work.Sleep(restRecheck) {
			return errLeaving
		}
	}
	return nil
}

// Gone reports that another member has left in order, or was fenced. Its jobs for tasks of this
// member are recovered.
func (m *Member) Gone(incarnation string, left bool) {
	m.peers.markGone(incarnation, left)
	m.sendMessage(m.tasks, memberGone{incarnation})
	m.sendMessage(m.sessions, rescanJobs{})
	if r := m.carryPart().sharingRelay(); r != nil {
		r.Gone(incarnation)
	}
}

// Carry makes this member carry out jobs of other members' tasks, or withdraw some. It reports the
// results to the owners of the tasks, also if it does not carry out a job after all. After an error
// it does nothing with them: the tasks may move and finish the jobs before it would start.
func (m *Member) Carry(ctx context.Context, errands engine.Errands) error {
	if err := m.checkAvailable(); err != nil && !m.stopping.Load() {
		return err
	}
	heard, turn := make(chan struct{}, 1), &atomic.Bool{}
	m.sendMessage(m.sessions, carryForeign{slices.Clone(errands), turn, func() { heard <- struct{}{} }})
	_, err := answerOf(ctx, m, heard, nil)
	if err != nil && !turn.CompareAndSwap(false, true) {
		return nil // they were accepted meanwhile
	}
	return err
}

// Credited stores for which jobs workers are attached to another member. Credits of a member that
// is not known to be alive are ignored: jobs sent to it might be taken for lost.
func (m *Member) Credited(c *engine.Credits) {
	r := m.carryPart().sharingRelay()
	if r == nil || !m.peers.isMemberAlive(c.Member) {
		return
	}
	r.Credited(c)
	// it was reported gone meanwhile, perhaps to the relay before these credits
	if !m.peers.isMemberAlive(c.Member) {
		r.Gone(c.Member)
	}
}

// Heard receives news from another member.
func (m *Member) Heard(news engine.News) {
	if m.cfg.Heard != nil {
		m.cfg.Heard(news)
	}
}

// Offered receives jobs of other members' tasks for pollers of this one.
func (m *Member) Offered(jobs []engine.Offer) {
	m.sendMessage(m.sessions, jobsOffered{slices.Clone(jobs)})
}
