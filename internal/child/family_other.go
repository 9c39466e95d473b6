//go:build !linux

package child

// Family is a program that was started. Here nobody can be told what else it has started.
type Family struct{}

// New is the family of a program that is about to be started.
func New() Family { return Family{} }

// Variable belongs into the environment of the program.
func (Family) Variable() string { return "TROUPE_FAMILY=" }

// Mark is 0: there is none here.
func (Family) Mark() uint64 { return 0 }

// Adopt is called as soon as the program was started.
func (Family) Adopt(int) {}

// Kill ends the family, as far as it is known.
func (Family) Kill() {}

// Leave is called when the program itself has ended.
func (Family) Leave() {}
