//go:build !linux

package child

// limitMemory cannot be kept here: processes have no such bound, or do not heed it.
func limitMemory(int, uint64) {}
