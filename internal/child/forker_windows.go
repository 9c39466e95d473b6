package child

import "errors"

// Forker is a process that forks itself when it is asked to. Here none can.
type Forker struct{}

// CanFork reports whether there are processes here that fork themselves.
const CanFork = false

var errCannotFork = errors.New("processes cannot fork themselves here")

// StartForker starts nothing.
func StartForker(Command) (*Forker, error) { return nil, errCannotFork }

// Start starts nothing.
func (*Forker) Start(Command) (*Process, error) { return nil, errCannotFork }

// Running is how many processes it has forked that go on.
func (*Forker) Running() int { return 0 }

// Gone is closed when it has ended.
func (*Forker) Gone() <-chan struct{} { return nil }

// Close ends it.
func (*Forker) Close() {}

type forkedProcess struct{}

func (*forkedProcess) reap(*Process) (State, error) { return nil, errCannotFork }
