//go:build troupe_next

package flow

// Formats of the next release, which the test of a rolling upgrade builds.
const (
	Format         = 2
	snapshotFormat = 19
)
