package attached

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/flow"
)

// waitingQueue is the jobs of one type that wait for a worker with a service and labels.
type waitingQueue struct {
	exec           *flow.Exec // of any of them
	jobs           []waitingJob
	withdrawnCount int // jobs in it that were withdrawn, at most
}

type waitingJob struct {
	carry.Passage
	at   int64  // when it was enqueued, by the store's time
	turn uint64 // among those of the same time
}

// enqueueJob has a job wait. No session that may get it has a free credit. Jobs of other members'
// tasks have lines of their own: those that wait longest go first, whoever has their tasks.
func (s *Sessions) enqueueJob(p carry.Passage, job *flow.Job) {
	exec := job.Exec
	key := string(exec.Type) + "\x00" + exec.Service + "\x00" + strings.Join(exec.Labels, "\x00")
	if p.Foreign() {
		key += "\x01"
	}
	l := s.queues[key]
	if l == nil {
		l = &waitingQueue{exec: exec}
		s.queues[key] = l
	}
	s.turn++
	l.jobs = append(l.jobs, waitingJob{p, job.EnqueuedAt, s.turn})
}

// popJob takes the first job out of a line, which must have one.
func (s *Sessions) popJob(key string, l *waitingQueue) waitingJob {
	first := l.jobs[0]
	l.jobs[0] = waitingJob{}
	if l.jobs = l.jobs[1:]; len(l.jobs) == 0 {
		delete(s.queues, key)
	}
	return first
}

// fillSession gives a session as many jobs as it has free credits, those first that have waited
// longest.
func (s *Sessions) fillSession(ses *workerSession) {
	for !s.isLeaving() && ses.freeCredits() > 0 {
		key, l := s.oldestQueue(ses)
		if l == nil {
			return
		}
		p := s.popJob(key, l).Passage
		if job := p.Job(); !s.parkQueued(p, &job) {
			ses.giveJob(p, &job)
		}
	}
}

// oldestQueue is the line whose first job has waited longest of those that a session may get.
func (s *Sessions) oldestQueue(ses *workerSession) (key string, first *waitingQueue) {
	for k, l := range s.queues {
		if (first == nil || l.jobs[0].isBefore(first.jobs[0])) && ses.group.canServe(l.exec) {
			key, first = k, l
		}
	}
	return key, first
}

func (w waitingJob) isBefore(o waitingJob) bool { return w.compare(o) < 0 }

func (w waitingJob) compare(o waitingJob) int {
	return cmp.Or(cmp.Compare(w.at, o.at), cmp.Compare(w.turn, o.turn))
}

// keysByAge are the keys of all lines, that one first whose first job has waited longest.
func (s *Sessions) keysByAge() []string {
	return slices.SortedFunc(maps.Keys(s.queues), func(a, b string) int { return s.queues[a].jobs[0].compare(s.queues[b].jobs[0]) })
}

// removeUnservable takes out the jobs that nobody is there for any more.
func (s *Sessions) removeUnservable() (failed []carry.Passage) {
	if s.isLeaving() {
		return nil
	}
	for _, key := range s.keysByAge() {
		l := s.queues[key]
		if s.hasWorkerFor(l.exec) || s.isWorkerAwaited(l.exec) {
			continue
		}
		delete(s.queues, key)
		for _, w := range l.jobs {
			failed = append(failed, w.Passage)
		}
	}
	return failed
}

// noteWithdrawn notes that a job in a line was withdrawn. When that may be half of a long one, the
// line is looked through: what nobody waits for is not to be kept for as long as a worker takes.
func (s *Sessions) noteWithdrawn() {
	for _, key := range s.keysByAge() {
		l := s.queues[key]
		if l.withdrawnCount++; l.withdrawnCount < 100 || l.withdrawnCount < len(l.jobs)/2 {
			continue
		}
		l.withdrawnCount = 0
		l.jobs = slices.DeleteFunc(l.jobs, func(w waitingJob) bool {
			over := w.Over()
			if over {
				w.Land(flow.Report{Lost: true})
			}
			return over
		})
		if len(l.jobs) == 0 {
			delete(s.queues, key)
		}
	}
}
