package child

import "syscall"

// niceness is added to the niceness of programs. When the processors are busy, a program gets a
// tenth of the member's share.
const niceness = 10

// lowerPriority lowers the priority of a program and its descendants, because the member's leases,
// heartbeats and other tasks need the processor. On an error, the program keeps the priority of
// this process.
func (p *Process) lowerPriority() {
	// The system call returns 20 minus the niceness.
	if ours, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, p.Pid, 20-ours+niceness)
	}
}
