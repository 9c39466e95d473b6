package sim

import (
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/actors/attached"
	"github.com/troupe-engine/troupe/flow"
)

// newRelay is how a member reaches those who are attached to it.
func (a *simMember) newRelay() actors.Relay {
	if a.st.options.Fickle {
		a.fickle = &fickleRelay{a.sessions, map[actors.Passage]*fickleJob{}, map[string]*fickleJob{}}
		return a.fickle
	}
	return a.sessions
}

// fickleRelay is a defect to be caught: what a worker has goes to others as soon as its stream
// breaks, though its session goes on when it is back.
type fickleRelay struct {
	*attached.Sessions
	jobs map[actors.Passage]*fickleJob
	byID map[string]*fickleJob
}

// fickleJob lands once, whoever says that it does.
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

// dropJobs is about a worker's stream.
func (f *fickleRelay) dropJobs(d *attachedWorker) {
	for _, n := range slices.Sorted(maps.Keys(d.held)) {
		if j := f.byID[d.held[n].GetId()]; j != nil {
			j.Land(flow.Report{Lost: true})
		}
	}
}
