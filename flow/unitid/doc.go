// Package unitid names a unit of a task by a UUID alone. The id of such a task leaves room for the
// node and the unit. Workers get the id with their jobs, and clients of Ork know units by it.
package unitid
