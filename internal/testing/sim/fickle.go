package sim

import (
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/flow"
)

// newRelay returns a member's access to its attached workers.
func (a *simMember) newRelay() actors.Relay {
	if a.st.options.Fickle {
		a.fickle = &fickleRelay{a.sessions, map[actors.Passage]*fickleJob{}, map[string]*fickleJob{}}
		return a.fickle
	}
	return a.sessions
}

// fickleRelay is a defect to be caught: the jobs of a worker move to others as soon as its stream
// breaks, although its session resumes later.
type fickleRelay struct {
	*attached.Sessions
	jobs map[actors.Passage]*fickleJob
	byID map[string]*fickleJob
}

// fickleJob reports its end at most once.
type fickleJob struct {
	actors.Passage
	landed bool
}

func (j *fickleJob) Land(r flow.Report) {
	if !j.landed {
		j.landed = true
		j.Passage.Land(r)
	}
}

func (f *fickleRelay) Send(jobs []actors.Passage) {
	all := make([]actors.Passage, len(jobs))
	for i, p := range jobs {
		job := p.Job()
		j := &fickleJob{Passage: p}
		f.jobs[p], f.byID[job.ID()], all[i] = j, j, j
	}
	f.Sessions.Send(all)
}

func (f *fickleRelay) CallOff(p actors.Passage) { f.Sessions.CallOff(f.jobs[p]) }

// dropJobs ends the jobs of a worker whose stream broke.
func (f *fickleRelay) dropJobs(d *attachedWorker) {
	for _, n := range slices.Sorted(maps.Keys(d.held)) {
		if j := f.byID[d.held[n].GetId()]; j != nil {
			j.Land(flow.Report{Lost: true})
		}
	}
}
