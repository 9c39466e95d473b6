//go:build troupe_next

package flow

// These stand for the release after this one, which the test of a rolling upgrade builds.
const (
	Format         = 2
	snapshotFormat = 16
)
