//go:build !linux

package child

// lowerPriority does nothing: on this system programs have our priority.
func (*Process) lowerPriority() {}
