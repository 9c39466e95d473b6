//go:build !troupe_next

package flow

// Format is the newest format of journals that this release writes. All earlier formats can be
// read, too.
//
// The format increases with each change that the previous release cannot read, such as a new kind
// of event. Then Row also has to write the previous format. Rows use the previous format until all
// members of a cluster understand the newest.
const Format = 1

// snapshotFormat is the format of snapshots, stored in their first byte. A snapshot of another
// format cannot be used; the caller applies the whole journal instead. The format changes with
// every new field.
const snapshotFormat = 18
