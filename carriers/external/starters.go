package external

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Starter starts jobs in another system, for nodes with exec_type external, by service name.
type Starter interface {
	// Start starts a job. The report ends the attempt, or names external work in Deferred, which
	// the tracker of that service polls. Without an Output, the output is that of the external
	// work. Work that is queued in the other system is Pending, until the tracker reports its
	// start.
	//
	// If the member dies before the report is stored, the job is started again on any member. lost
	// reports that an earlier call may have started it. Then Start must search for it by the job's
	// ID first.
	//
	// If ctx ends, the job may no longer be needed; the tracker then cancels the work. A host that
	// was suspended may continue a Start after another member has started the job. Only systems
	// that refuse a second job with the same name prevent that.
	Start(ctx context.Context, job flow.Job, lost bool) flow.Report
}

// Starters maps service names to starters.
type Starters map[string]Starter

// otherBinaries names services whose starters are in another Troupe binary.
var otherBinaries = map[string]string{"cloudrun": "troupe-cloud", "kubernetes": "troupe-cloud"}

func (s Starters) startJob(ctx context.Context, job flow.Job, lost bool) flow.Report {
	starter := s[job.Exec.Service]
	if binary, ok := otherBinaries[job.Exec.Service]; ok && starter == nil {
		return flow.Report{Fatal: true, Error: fmt.Sprintf("executor %s is not in this binary: use %s", job.Exec.Service, binary)}
	}
	if starter == nil {
		return flow.Report{Fatal: true, Error: fmt.Sprintf(
			"nobody on this member begins jobs of %q: %s", job.Exec.Service, s.describeStarters())}
	}
	return starter.Start(ctx, job, lost)
}

// describeStarters describes the available starters for an error text.
func (s Starters) describeStarters() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s)), func(name string) bool { return name == flow.ChildTask })
	if len(names) == 0 {
		return "it was started without any starter"
	}
	return "it knows " + strings.Join(names, ", ")
}
