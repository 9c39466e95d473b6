package actors

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

// Carrier carries out the jobs of one exec type on this member: local functions, scripts, calls to
// push workers.
//   - Carry is called in a goroutine of its own, at most as many at once as Config allows for the
//     type.
//   - ctx ends when the job is withdrawn, when it times out, or when the member stops.
//   - The caller fills in the report's Address. An Output must be valid JSON or nil.
//   - A panic in Carry is reported as the attempt's error.
type Carrier interface {
	Carry(ctx context.Context, job flow.Job) flow.Report
}

// Selective is a Carrier that has only some functions of its exec type. Jobs of other functions go
// to attached workers.
type Selective interface {
	Carrier
	// Has reports whether the carrier has the given function.
	Has(function string) bool
}
