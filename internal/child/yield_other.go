//go:build !linux

package child

// lowerPriority does nothing: on this system programs have the priority of this process.
func (*Process) lowerPriority() {}
