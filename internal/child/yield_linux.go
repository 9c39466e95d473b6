package child

import "syscall"

// niceness is how much nicer programs are than we: where the processors are busy, one of them gets
// a tenth of the time that we get.
const niceness = 10

// lowerPriority has a program, and what it starts, stand back where the processors are busy: our
// leases, heartbeats and the tasks of others depend on us. Where that cannot be said they stand
// beside us.
func (p *Process) lowerPriority() {
	// The system call tells 20 less the niceness.
	if ours, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, p.Pid, 20-ours+niceness)
	}
}
