package actors

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// The new owners of moved tasks withdraw the jobs of these tasks. A withdrawal is lost if its owner
// ends before sending it, because the next owner ignores ended jobs. So a member that carries out
// such jobs periodically asks their tasks whether the jobs are still needed.

// inquiryInterval is the pause between inquiries. The first inquiry skips new jobs, because most of
// them end before the next one.
const inquiryInterval = 30 * time.Second

// maxInquiries is how many jobs one request asks about. inquiryTimeout bounds the time for one
// request. Tasks that do not answer are asked again at the next inquiry.
const (
	maxInquiries   = 500
	inquiryTimeout = 2 * time.Second
)

// Messages to the sessions actor.
type (
	// inquireForeign makes the sessions actor ask whether jobs of moved tasks are still needed.
	inquireForeign struct{}
	// jobsUnwanted lists jobs that are no longer needed.
	jobsUnwanted struct{ flights []*activeJob }
)

// inquireLater schedules the next inquiry. It does nothing if this member owns all tasks
// permanently.
func (s *sessions) inquireLater() {
	m := s.m
	if m.cfg.Others != nil && !m.owned.OwnsAll() {
		m.work.After(inquiryInterval, func() { m.sendMessage(m.sessions, inquireForeign{}) })
	}
}

// inquireForeign asks tasks of other members whether their jobs on this member are still needed.
func (s *sessions) inquireForeign() {
	var due []*activeJob
	for _, f := range s.jobsInOrder(s.isForeignJob) {
		if f.inquireNext {
			due = append(due, f)
		}
		f.inquireNext = true
	}
	m := s.m
	m.work.Run(func() {
		for some := range slices.Chunk(due, maxInquiries) {
			if over := m.carryPart().findEndedJobs(some); len(over) > 0 {
				m.sendMessage(m.sessions, jobsUnwanted{over})
			}
		}
		s.inquireLater()
	})
}

// findEndedJobs returns the jobs that are known to be no longer needed.
func (m jobCarrying) findEndedJobs(flights []*activeJob) (over []*activeJob) {
	orders := make(engine.Orders, len(flights))
	for i, f := range flights {
		orders[i] = engine.Order{Task: f.key.Task, Command: flow.Inquire{Address: f.key.At, Carrier: m.incarnation, Given: f.delivery}}
	}
	ctx, cancel := m.work.WithTimeout(inquiryTimeout)
	defer cancel()
	for i, o := range m.cfg.Others.Do(ctx, orders) {
		switch flow.ErrorKindOf(o.Err) {
		case flow.Conflict, flow.NotFound:
			over = append(over, flights[i])
		}
	}
	return over
}

// withdrawUnwanted withdraws jobs that are no longer needed, unless a newer delivery has replaced
// them.
func (s *sessions) withdrawUnwanted(m jobsUnwanted) {
	for _, f := range m.flights {
		if s.activeJobs[f.key] == f {
			s.withdrawJob(f.key, f.delivery)
		}
	}
}

// isForeignJob reports whether a job belongs to a task of another member. It also checks the
// ownership of shards, because the inbox of a crashed task stays attached after a move.
func (s *sessions) isForeignJob(f *activeJob) bool {
	in := f.inbox.Load()
	return in != nil && (in.HasMoved() || !s.m.owned.OwnsTask(f.key.Task))
}
