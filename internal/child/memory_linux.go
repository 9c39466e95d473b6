package child

import "golang.org/x/sys/unix"

// limitMemory bounds what a process that has just begun, and each one that it starts, may write to
// that is its own. What it has reserved does not count: many programs reserve much more than they
// use.
func limitMemory(pid int, bytes uint64) {
	limit := unix.Rlimit{Cur: bytes, Max: bytes}
	if unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil) != nil {
		return // it has ended
	}
	for _, child := range childrenOf(pid) { // they were started before
		limitMemory(child, bytes)
	}
}
