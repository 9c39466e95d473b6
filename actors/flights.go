package actors

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// findJob returns a job that was given to this member. An earlier delivery of the job is withdrawn,
// and its later reports are ignored, because its worker lost the job meanwhile.
func (s *sessions) findJob(key engine.JobKey, given int) *activeJob {
	f := s.activeJobs[key]
	if f == nil || f.delivery >= given {
		return f
	}
	s.withdrawJob(key, f.delivery)
	s.removeJob(f)
	return nil
}

// newJob creates an activeJob. It keeps the dispatch effect itself, because a copy of the large job
// would double its memory.
func (s *sessions) newJob(key engine.JobKey, dispatch flow.Effect, w jobRoute, in *inbox) *activeJob {
	f := &activeJob{key: key, dispatch: dispatch, route: w}
	f.delivery = f.dispatch.(flow.Dispatch).Job.Given
	if f.dispatch.(flow.Dispatch).Job.Exec.Type == flow.ExecCode {
		f.waitEnds = &waitEnds{m: s.m, f: f}
	}
	f.jobCtx.member = s.m.work.Context()
	f.inbox.Store(in)
	return f
}

func (s *sessions) addJob(f *activeJob) {
	s.activeJobs[f.key] = f
	if f.olderOfTask = s.newestByTask[f.key.Task]; f.olderOfTask != nil {
		f.olderOfTask.newerOfTask = f
	}
	s.newestByTask[f.key.Task] = f
}

func (s *sessions) removeJob(f *activeJob) {
	if s.activeJobs[f.key] != f {
		return // it was removed before
	}
	delete(s.activeJobs, f.key)
	if f.olderOfTask != nil {
		f.olderOfTask.newerOfTask = f.newerOfTask
	}
	switch {
	case f.newerOfTask != nil:
		f.newerOfTask.olderOfTask = f.olderOfTask
	case f.olderOfTask != nil:
		s.newestByTask[f.key.Task] = f.olderOfTask
	default:
		delete(s.newestByTask, f.key.Task)
	}
	f.olderOfTask, f.newerOfTask = nil, nil
}

// withdrawUnowed withdraws the jobs of a task or step that are missing in the list of outstanding
// jobs.
func (s *sessions) withdrawUnowed(m outstandingJobs) {
	f := s.newestByTask[m.task]
	if f == nil {
		return
	}
	owed := map[flow.Address]bool{}
	for _, e := range m.owed {
		if job := flow.JobOf(e); job != nil {
			owed[job.Address] = true
		}
	}
	for f != nil {
		older := f.olderOfTask
		if !owed[f.key.At] && isWithinStep(f.key.At, m.under) {
			s.withdrawJob(f.key, f.delivery)
		}
		f = older
	}
}

// isWithinStep reports whether an address is in a step or below that step. Every address is within
// the empty step.
func isWithinStep(at, step flow.Address) bool {
	if step.Node == "" || at.Scope == step.Scope && at.Node == step.Node && at.Visit == step.Visit {
		return true
	}
	scope := flow.ChildScope(step)
	return at.Scope == scope || strings.HasPrefix(at.Scope, scope+"/")
}

// jobsInOrder returns the matching jobs sorted by address, so that repeated runs get the same
// order.
func (s *sessions) jobsInOrder(which func(*activeJob) bool) (list []*activeJob) {
	for _, f := range s.activeJobs {
		if which(f) {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *activeJob) int {
		return cmp.Or(cmp.Compare(a.key.Task, b.key.Task), a.key.At.Compare(b.key.At))
	})
	return list
}
