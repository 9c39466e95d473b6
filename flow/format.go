//go:build !troupe_next

package flow

// Format is the newest format of journals that this release writes; it reads those of every format
// before, too. It grows with what the release before could not read, such as a new kind of event,
// and then Row writes the format before as well: that is how rows are written until all members of
// a cluster understand the newest.
const Format = 1

// snapshotFormat names how snapshots are written, in their first byte. One of another format is of
// no use: the caller folds the whole journal instead. It changes with every field that is added.
const snapshotFormat = 15
