package actors

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

// Carrier carries out the jobs of one exec type on this member: local functions, scripts, calls to
// push workers. Carry is called in a goroutine of its own, at most as many at once as Config says
// for the type. ctx ends when the job is withdrawn, times out, or the member goes. The report's
// Address is filled in by the caller; an Output must be valid JSON or nil. A panic in Carry
// is reported as the attempt's error.
type Carrier interface {
	Carry(ctx context.Context, job flow.Job) flow.Report
}
