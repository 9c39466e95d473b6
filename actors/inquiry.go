package actors

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Jobs of tasks that other members have by now are withdrawn by those. One that ends before it has said so leaves nobody who knows that there is
// something to withdraw: what is over the next owner does not look at. So who carries such a job asks its task now and then whether anybody
// waits for it.

// inquireEvery is how often. A job that is new is asked for the next time: most are over by then.
const inquireEvery = 30 * time.Second

// What is asked at once, and for how long. Who does not answer is asked the next time.
const (
	maxInquiries = 500
	inquiryStays = 2 * time.Second
)

// Messages to the sessions actor.
type (
	// inquire has it look for jobs to ask for.
	inquire struct{}
	// unwanted are jobs that nobody waits for.
	unwanted struct{ flights []*flight }
)

// inquireLater begins anew in a while. A member that has all tasks for good carries nothing for others.
func (s *sessions) inquireLater() {
	m := s.m
	if m.cfg.Others != nil && !m.owned.fixed {
		m.cfg.Host.Clock.AfterFunc(inquireEvery, func() { m.tell(m.sessions, inquire{}) })
	}
}

// inquire asks for the jobs whose tasks have gone to other members, or never were here.
func (s *sessions) inquire() {
	var due []*flight
	for _, f := range s.inOrder((*flight).reportsElsewhere) {
		if f.known {
			due = append(due, f)
		}
		f.known = true
	}
	m := s.m
	m.background(func() {
		for some := range slices.Chunk(due, maxInquiries) {
			if over := m.overAmong(some); len(over) > 0 {
				m.tell(m.sessions, unwanted{over})
			}
		}
		s.inquireLater()
	})
}

// overAmong are those that nobody waits for, as far as it is known.
func (m *Member) overAmong(flights []*flight) (over []*flight) {
	orders := make(engine.Orders, len(flights))
	for i, f := range flights {
		orders[i] = engine.Order{Task: f.key.task, Command: flow.Inquire{Address: f.key.at, Carrier: m.incarnation, Given: f.given}}
	}
	ctx, cancel := m.bounded(inquiryStays)
	defer cancel()
	for i, o := range m.cfg.Others.Do(ctx, orders) {
		switch flow.ErrorKindOf(o.Err) {
		case flow.Conflict, flow.NotFound:
			over = append(over, flights[i])
		}
	}
	return over
}

// unwanted lets go of jobs, unless they are known as others by now.
func (s *sessions) unwanted(m unwanted) {
	for _, f := range m.flights {
		if s.flights[f.key] == f {
			s.withdraw(f.key, f.given)
		}
	}
}

// reportsElsewhere says whether what a job reports is brought to another member, as far as this one knows.
func (f *flight) reportsElsewhere() bool {
	in := f.inbox.Load()
	return in != nil && in.moved()
}
