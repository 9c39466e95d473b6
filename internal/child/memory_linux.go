package child

import "golang.org/x/sys/unix"

// limitMemory limits the private writable memory of a new process, and of each process it starts.
// Reserved memory does not count, because many programs reserve much more than they use.
func limitMemory(pid int, bytes uint64) {
	limit := unix.Rlimit{Cur: bytes, Max: bytes}
	if unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil) != nil {
		return // the process has ended
	}
	for _, child := range childrenOf(pid) { // started before the limit was set
		limitMemory(child, bytes)
	}
}
