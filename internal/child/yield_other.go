//go:build !linux

package child

// lowerPriority does nothing: here programs stand beside us.
func (*Process) lowerPriority() {}
