//go:build !linux

package child

// Family is a started program. On this system its descendants cannot be found.
type Family struct{}

// New returns the family of a program that is about to be started.
func New() Family { return Family{} }

// Variable returns the entry for the environment of the program.
func (Family) Variable() string { return "TROUPE_FAMILY=" }

// Mark returns 0, because this system has no marks.
func (Family) Mark() uint64 { return 0 }

// Adopt does nothing.
func (Family) Adopt(int) {}

// Kill does nothing.
func (Family) Kill() {}

// Leave does nothing.
func (Family) Leave() {}
