package actors

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Jobs of tasks that have moved are withdrawn by their new owners. If an owner ends before its
// withdrawal is sent, the withdrawal is lost: the next owner ignores what has ended. So a member
// that carries out such jobs asks their tasks from time to time whether they are still needed.

// inquiryInterval is the pause between inquiries. A new job is skipped the first time: most have
// ended by the next one.
const inquiryInterval = 30 * time.Second

// maxInquiries is how many jobs one request asks for, and inquiryTimeout how long it may take.
// Tasks that do not answer are asked again the next time.
const (
	maxInquiries   = 500
	inquiryTimeout = 2 * time.Second
)

// Messages to the sessions actor.
type (
	// inquireForeign makes the sessions actor look for jobs to ask for.
	inquireForeign struct{}
	// jobsUnwanted are jobs that are no longer needed.
	jobsUnwanted struct{ flights []*activeJob }
)

// inquireLater schedules the next inquiry. A member that owns all tasks permanently carries out no
// jobs for others.
func (s *sessions) inquireLater() {
	m := s.m
	if m.cfg.Others != nil && !m.owned.OwnsAll() {
		m.work.After(inquiryInterval, func() { m.sendMessage(m.sessions, inquireForeign{}) })
	}
}

// inquireForeign asks for the jobs whose tasks belong to other members.
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

// withdrawUnwanted withdraws jobs that are no longer needed, unless they were replaced meanwhile.
func (s *sessions) withdrawUnwanted(m jobsUnwanted) {
	for _, f := range m.flights {
		if s.activeJobs[f.key] == f {
			s.withdrawJob(f.key, f.delivery)
		}
	}
}

// isForeignJob reports whether a job belongs to a task of another member. The inbox of a task that
// crashed before it moved is not detached, because no actor was left to do that.
func (s *sessions) isForeignJob(f *activeJob) bool {
	in := f.inbox.Load()
	return in != nil && (in.HasMoved() || !s.m.owned.OwnsTask(f.key.Task))
}
