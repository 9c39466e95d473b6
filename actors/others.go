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
	// they are answered or ctx ends. It returns the answers in the same order. An order may be
	// delivered repeatedly. A busy owner counts as an answer only for a claim.
	Do(ctx context.Context, orders engine.Orders) engine.Outcomes
	// Owner returns the incarnation of the known owner of a task; "" if no owner is known.
	Owner(task string) string
	// Carry asks another member, by its incarnation, to carry out or withdraw jobs. A nil error
	// means that the other member is responsible for them. After an error, the request may be
	// repeated.
	Carry(ctx context.Context, carrier string, errands engine.Errands) error
	// Credits announces to all members which jobs the attached workers of this member can take. The
	// notice may be lost.
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
		done   func() // called when no task of the shards is in memory
	}
	// memberGone reports that another member is gone, so that its jobs are recovered.
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

// Lose hands over shards to other members. Commands for their tasks are refused (flow.Moved), and
// the tasks rest after their decisions are stored. Running jobs continue and report to the new
// owners. When Lose returns nil, no task of the shards is in memory or has pending writes. After an
// error, repeat Lose, or call Gain to keep the shards.
func (m *Member) Lose(ctx context.Context, shards []int) error {
	if m.owned.OwnsAll() {
		return flow.Errorf(flow.Conflict, "the member is alone on its store: there is no other member to take its tasks")
	}
	done := make(chan struct{}, 1)
	m.sendMessage(m.tasks, loseShards{slices.Clone(shards), func() { done <- struct{}{} }})
	if _, err := answerOf(ctx, m, done, nil); err != nil {
		return err
	}
	// commits of a crashed actor, or jobs in flight to other members, may be pending
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

// Gone reports that another member has left in order, or was fenced. This member recovers the jobs
// of its tasks that ran there.
func (m *Member) Gone(incarnation string, left bool) {
	m.peers.markGone(incarnation, left)
	m.sendMessage(m.tasks, memberGone{incarnation})
	m.sendMessage(m.sessions, rescanJobs{})
	if r := m.carryPart().sharingRelay(); r != nil {
		r.Gone(incarnation)
	}
}

// Carry makes this member carry out or withdraw jobs of other members' tasks. Results go to the
// owners of the tasks, also for jobs that are not carried out. After an error the member has not
// started any of the jobs.
func (m *Member) Carry(ctx context.Context, errands engine.Errands) error {
	if err := m.checkAvailable(); err != nil && !m.stopping.Load() {
		return err
	}
	heard, turn := make(chan struct{}, 1), &atomic.Bool{}
	m.sendMessage(m.sessions, carryForeign{slices.Clone(errands), turn, func() { heard <- struct{}{} }})
	_, err := answerOf(ctx, m, heard, nil)
	if err != nil && !turn.CompareAndSwap(false, true) {
		return nil // the sessions actor accepted them meanwhile
	}
	return err
}

// Credited records which jobs the attached workers of another member can take. It ignores credits
// of a member that is not known to be alive, because jobs sent there might count as lost.
func (m *Member) Credited(c *engine.Credits) {
	r := m.carryPart().sharingRelay()
	if r == nil || !m.peers.isMemberAlive(c.Member) {
		return
	}
	r.Credited(c)
	// the relay may have got these credits after the report that the member is gone
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

// Offered receives jobs of other members' tasks for pollers of this member.
func (m *Member) Offered(jobs []engine.Offer) {
	m.sendMessage(m.sessions, jobsOffered{slices.Clone(jobs)})
}
