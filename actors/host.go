package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/internal/goroutines"
	"github.com/troupe-engine/troupe/internal/host"
)

// Host is the environment of the actors: their scheduling, goroutines for blocking work, and the
// clock. The zero value is the real environment; the simulator replaces it.
type Host struct {
	// Dispatcher runs mailboxes. If nil, a dispatcher with one goroutine per processor is used.
	Dispatcher actor.Dispatcher
	// Go runs work that may block. If nil, it runs in reused goroutines.
	Go func(func())
	// Clock is the clock. If nil, it is the real one.
	Clock Clock
	// Park is called before a wait, with a function that reports whether the wait has ended. If
	// nil, waits block.
	Park func(over func() bool)
	// Probe, if set, receives each message of a task or step before the actor does. A panic in
	// Probe counts as a panic of that actor. Tests and the simulator use Probe to crash actors.
	Probe func(actor string, message any)
}

// Clock is monotonic: it measures elapsed time, not the time of day.
type Clock = host.Clock

func (h Host) callProbe(actor string, message any) {
	if h.Probe != nil {
		h.Probe(actor, message)
	}
}

func (h Host) orDefault(g *goroutines.Pool, d *background.Dispatcher) Host {
	if h.Dispatcher == nil {
		h.Dispatcher = d
	}
	if h.Go == nil {
		h.Go = g.Run
	}
	if h.Clock == nil {
		h.Clock = background.RealClock{}
	}
	return h
}
