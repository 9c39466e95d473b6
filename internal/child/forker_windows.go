package child

import "errors"

// Forker is a process that forks itself on request. Windows does not support it.
type Forker struct{}

// CanFork reports whether this system supports a Forker.
const CanFork = false

var errCannotFork = errors.New("processes cannot fork themselves here")

// StartForker returns an error.
func StartForker(Command) (*Forker, error) { return nil, errCannotFork }

// Start returns an error.
func (*Forker) Start(Command) (*Process, error) { return nil, errCannotFork }

// Running returns 0.
func (*Forker) Running() int { return 0 }

// Gone returns nil.
func (*Forker) Gone() <-chan struct{} { return nil }

// Close does nothing.
func (*Forker) Close() {}

type forkedProcess struct{}

func (*forkedProcess) reap(*Process) (State, error) { return nil, errCannotFork }
