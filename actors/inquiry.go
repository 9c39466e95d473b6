package actors

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Jobs of tasks that other members have by now are withdrawn by those. One that ends before it has
// said so leaves nobody who knows that there is something to withdraw: what is over the next owner
// does not look at. So who carries such a job asks its task now and then whether anybody waits for
// it.

// inquiryInterval is how often. A job that is new is asked for the next time: most are over by
// then.
const inquiryInterval = 30 * time.Second

// What is asked at once, and for how long. Who does not answer is asked the next time.
const (
	maxInquiries   = 500
	inquiryTimeout = 2 * time.Second
)

// Messages to the sessions actor.
type (
	// inquireForeign has it look for jobs to ask for.
	inquireForeign struct{}
	// jobsUnwanted are jobs that nobody waits for.
	jobsUnwanted struct{ flights []*activeJob }
)

// inquireLater begins anew in a while. A member that has all tasks for good carries nothing for
// others.
func (s *sessions) inquireLater() {
	m := s.m
	if m.cfg.Others != nil && !m.owned.ownsAll {
		m.cfg.Host.Clock.AfterFunc(inquiryInterval, func() { m.sendMessage(m.sessions, inquireForeign{}) })
	}
}

// inquireForeign asks for the jobs whose tasks have gone to other members, or never were here.
func (s *sessions) inquireForeign() {
	var due []*activeJob
	for _, f := range s.jobsInOrder((*activeJob).isForeign) {
		if f.inquireNext {
			due = append(due, f)
		}
		f.inquireNext = true
	}
	m := s.m
	m.runBackground(func() {
		for some := range slices.Chunk(due, maxInquiries) {
			if over := m.findEndedJobs(some); len(over) > 0 {
				m.sendMessage(m.sessions, jobsUnwanted{over})
			}
		}
		s.inquireLater()
	})
}

// findEndedJobs are those that nobody waits for, as far as it is known.
func (m *Member) findEndedJobs(flights []*activeJob) (over []*activeJob) {
	orders := make(engine.Orders, len(flights))
	for i, f := range flights {
		orders[i] = engine.Order{Task: f.key.task, Command: flow.Inquire{Address: f.key.at, Carrier: m.incarnation, Given: f.delivery}}
	}
	ctx, cancel := m.timeoutContext(inquiryTimeout)
	defer cancel()
	for i, o := range m.cfg.Others.Do(ctx, orders) {
		switch flow.ErrorKindOf(o.Err) {
		case flow.Conflict, flow.NotFound:
			over = append(over, flights[i])
		}
	}
	return over
}

// withdrawUnwanted lets go of jobs, unless they are known as others by now.
func (s *sessions) withdrawUnwanted(m jobsUnwanted) {
	for _, f := range m.flights {
		if s.activeJobs[f.key] == f {
			s.withdrawJob(f.key, f.delivery)
		}
	}
}

// isForeign reports whether what a job reports is brought to another member, as far as this one
// knows.
func (f *activeJob) isForeign() bool {
	in := f.inbox.Load()
	return in != nil && in.hasMoved()
}
