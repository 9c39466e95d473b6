//go:build troupe_next

package flow

// Formats of the next release. The test of a rolling upgrade builds that release.
const (
	Format         = 2
	snapshotFormat = 19
)
