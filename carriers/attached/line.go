package attached

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/flow"
)

// waitingQueue holds the jobs of one exec type that wait for a worker with the same service and
// labels.
type waitingQueue struct {
	exec           *flow.Exec // exec of any of the jobs
	jobs           []waitingJob
	withdrawnCount int // upper bound of withdrawn jobs in the queue
}

type waitingJob struct {
	carriers.Passage
	at   int64  // enqueue time, by the store's clock
	turn uint64 // order among jobs with equal times
}

// enqueueJob queues a job for which no session has a free credit. Jobs of other members' tasks have
// separate queues. The longest waiting job of all queues goes first.
func (s *Sessions) enqueueJob(p carriers.Passage, job *flow.Job) {
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

// popJob removes the first job from a queue, which must not be empty.
func (s *Sessions) popJob(key string, l *waitingQueue) waitingJob {
	first := l.jobs[0]
	l.jobs[0] = waitingJob{}
	if l.jobs = l.jobs[1:]; len(l.jobs) == 0 {
		delete(s.queues, key)
	}
	return first
}

// fillSession gives a session jobs for its free credits, longest waiting first.
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

// oldestQueue returns the queue with the longest waiting job that a session can serve.
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

// keysByAge returns the keys of all queues, ordered by the waiting time of their first jobs.
func (s *Sessions) keysByAge() []string {
	return slices.SortedFunc(maps.Keys(s.queues), func(a, b string) int { return s.queues[a].jobs[0].compare(s.queues[b].jobs[0]) })
}

// removeUnservable removes and returns the jobs for which no worker is left.
func (s *Sessions) removeUnservable() (failed []carriers.Passage) {
	if s.isLeaving() {
		return nil
	}
	for _, key := range s.keysByAge() {
		l := s.queues[key]
		if s.hasWorkerFor(l.exec) || s.isWorkerAwaited(l.exec) {
			continue
		}
		keep := l.jobs[:0:0]
		for _, w := range l.jobs {
			if s.noteRefused(w.Passage, l.exec) {
				failed = append(failed, w.Passage)
			} else {
				keep = append(keep, w)
			}
		}
		if l.jobs = keep; len(keep) == 0 {
			delete(s.queues, key)
		}
	}
	return failed
}

// noteWithdrawn records that a queued job was withdrawn. When up to half of a long queue is
// withdrawn, it removes these jobs from memory.
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
