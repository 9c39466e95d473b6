package attached

import (
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/flow"
)

// line is the jobs that wait for a worker with a service and labels.
type line struct {
	exec *flow.Exec // of any of them
	jobs []waiting
	left int // jobs in it that were withdrawn, at most
}

type waiting struct {
	carry.Passage
	turn uint64
}

// lineUp has a job wait. No session that may get it has a free credit.
func (s *Sessions) lineUp(p carry.Passage, exec *flow.Exec) {
	key := exec.Service + "\x00" + strings.Join(exec.Labels, "\x00")
	l := s.lines[key]
	if l == nil {
		l = &line{exec: exec}
		s.lines[key] = l
	}
	s.turn++
	l.jobs = append(l.jobs, waiting{p, s.turn})
}

// fill gives a session as many jobs as it has free credits, those first that have waited longest.
func (s *Sessions) fill(ses *session) {
	for !s.leaving() && ses.free() > 0 {
		key, l := s.oldest(ses)
		if l == nil {
			return
		}
		p := l.jobs[0].Passage
		l.jobs[0] = waiting{}
		if l.jobs = l.jobs[1:]; len(l.jobs) == 0 {
			delete(s.lines, key)
		}
		job := p.Job()
		ses.give(p, &job)
	}
}

// oldest is the line whose first job has waited longest of those that a session may get.
func (s *Sessions) oldest(ses *session) (key string, first *line) {
	for k, l := range s.lines {
		if (first == nil || l.jobs[0].turn < first.jobs[0].turn) && ses.does(l.exec) {
			key, first = k, l
		}
	}
	return key, first
}

// hopeless takes out the jobs that nobody is there for any more.
func (s *Sessions) hopeless() (failed []carry.Passage) {
	if s.leaving() {
		return nil
	}
	for key, l := range s.lines {
		if s.offers(l.exec.Service, l.exec.Labels) || s.awaits(l.exec) {
			continue
		}
		delete(s.lines, key)
		for _, w := range l.jobs {
			failed = append(failed, w.Passage)
		}
	}
	return failed
}

// leaveLine notes that a job in a line was withdrawn. When that may be half of a long one, the line is looked through: what nobody
// waits for is not to be kept for as long as a worker takes.
func (s *Sessions) leaveLine() {
	for key, l := range s.lines {
		if l.left++; l.left < 100 || l.left < len(l.jobs)/2 {
			continue
		}
		l.left = 0
		l.jobs = slices.DeleteFunc(l.jobs, func(w waiting) bool {
			over := w.Over()
			if over {
				w.Land(flow.Report{Lost: true})
			}
			return over
		})
		if len(l.jobs) == 0 {
			delete(s.lines, key)
		}
	}
}
