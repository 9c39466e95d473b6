package external

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Starter begins jobs in another system: those of nodes with exec_type outside, by the name of
// their service.
type Starter interface {
	// Start begins a job there. Its report ends the attempt, or names in Deferred what it waits
	// for, which the tracker of that service looks after; with no Output theirs is that of the
	// attempt. What waits in line there is Pending: the tracker tells when it is under way. Should
	// the member go before the report is stored, the job is begun once more, on this member or
	// another one, however often: lost says that an earlier time may have begun it. It is to be
	// looked for then, by the job's ID, before another one is begun. When ctx ends meanwhile nobody
	// may wait for it any longer; whether that is so, the next one to be asked finds out, and what
	// is named for an attempt that is over its tracker calls off. A host that stood still may go on
	// with a Start when another member has begun the job: only a system that refuses a second one
	// of the same name is safe from that.
	Start(ctx context.Context, job flow.Job, lost bool) flow.Report
}

// Starters are known by the names of their services.
type Starters map[string]Starter

// otherBinaries are services whose starters another binary of ours has.
var otherBinaries = map[string]string{"cloudrun": "troupe-cloud", "kubernetes": "troupe-cloud"}

func (s Starters) startJob(ctx context.Context, job flow.Job, lost bool) flow.Report {
	starter := s[job.Exec.Service]
	if binary, ok := otherBinaries[job.Exec.Service]; ok && starter == nil {
		return flow.Report{Fatal: true, Error: fmt.Sprintf("executor %s is not in this binary: use %s", job.Exec.Service, binary)}
	}
	if starter == nil {
		return flow.Report{Fatal: true, Error: fmt.Sprintf("nobody on this member begins jobs of %q: %s", job.Exec.Service, s.describeStarters())}
	}
	return starter.Start(ctx, job, lost)
}

func (s Starters) describeStarters() string {
	if len(s) == 0 {
		return "it was started without any starter"
	}
	return "it knows " + strings.Join(slices.Sorted(maps.Keys(s)), ", ")
}
