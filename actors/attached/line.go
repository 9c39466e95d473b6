package attached

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/flow"
)

// line is the jobs of one type that wait for a worker with a service and labels.
type line struct {
	exec *flow.Exec // of any of them
	jobs []waiting
	left int // jobs in it that were withdrawn, at most
}

type waiting struct {
	carry.Passage
	at   int64  // when it was enqueued, by the store's time
	turn uint64 // among those of the same time
}

// lineUp has a job wait. No session that may get it has a free credit. Jobs of other members' tasks have lines of their own: those that
// wait longest go first, whoever has their tasks.
func (s *Sessions) lineUp(p carry.Passage, job *flow.Job) {
	exec := job.Exec
	key := string(exec.Type) + "\x00" + exec.Service + "\x00" + strings.Join(exec.Labels, "\x00")
	if p.Foreign() {
		key += "\x01"
	}
	l := s.lines[key]
	if l == nil {
		l = &line{exec: exec}
		s.lines[key] = l
	}
	s.turn++
	l.jobs = append(l.jobs, waiting{p, job.EnqueuedAt, s.turn})
}

// pop takes the first job out of a line, which must have one.
func (s *Sessions) pop(key string, l *line) waiting {
	first := l.jobs[0]
	l.jobs[0] = waiting{}
	if l.jobs = l.jobs[1:]; len(l.jobs) == 0 {
		delete(s.lines, key)
	}
	return first
}

// fill gives a session as many jobs as it has free credits, those first that have waited longest.
func (s *Sessions) fill(ses *session) {
	for !s.leaving() && ses.free() > 0 {
		key, l := s.oldest(ses)
		if l == nil {
			return
		}
		p := s.pop(key, l).Passage
		if job := p.Job(); !s.park(p, &job) {
			ses.give(p, &job)
		}
	}
}

// oldest is the line whose first job has waited longest of those that a session may get.
func (s *Sessions) oldest(ses *session) (key string, first *line) {
	for k, l := range s.lines {
		if (first == nil || l.jobs[0].before(first.jobs[0])) && ses.group.does(l.exec) {
			key, first = k, l
		}
	}
	return key, first
}

func (w waiting) before(o waiting) bool { return w.compare(o) < 0 }

func (w waiting) compare(o waiting) int {
	return cmp.Or(cmp.Compare(w.at, o.at), cmp.Compare(w.turn, o.turn))
}

// inTurn are the keys of all lines, that one first whose first job has waited longest.
func (s *Sessions) inTurn() []string {
	return slices.SortedFunc(maps.Keys(s.lines), func(a, b string) int { return s.lines[a].jobs[0].compare(s.lines[b].jobs[0]) })
}

// hopeless takes out the jobs that nobody is there for any more.
func (s *Sessions) hopeless() (failed []carry.Passage) {
	if s.leaving() {
		return nil
	}
	for _, key := range s.inTurn() {
		l := s.lines[key]
		if s.offers(l.exec) || s.awaits(l.exec) {
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
	for _, key := range s.inTurn() {
		l := s.lines[key]
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
