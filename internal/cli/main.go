// Package cli is the command line: a member of the workflow engine, its workers, and the commands
// that people use to publish flows and to start and follow tasks. A program is a name and what it
// adds to its members.
//
// Promises: flow and task commands know nothing but a server's /v1, so they work against any
// member, here or elsewhere, but for flow test, which needs none; the exit code is 0 when what was
// asked for is done, 1 when it failed (also when the task that was waited for failed) and 2 when
// the command line was wrong, or a file that flow test was given; results go to stdout, all else to
// stderr.
package cli

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/garbage"
)

// Large requests make the heap, and thereby the garbage that may gather, large for a while. From
// this size on garbage is collected more often instead. It is no bound: what is in use may be
// larger. GOMEMLIMIT, when set, goes before it.
const softMemory = 736 << 20

// tuneCollector sets what the environment leaves open.
func tuneCollector() {
	garbage.Bound()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}
}

// Addition is what a program adds to its members, such as starters, trackers and buckets: a pointer
// to a struct whose fields are flags beside those of every member.
type Addition interface {
	// Extend adds to a member's configuration what the flags ask for.
	Extend(cfg *troupe.Config) error
}

// Main is the whole program of this name.
func Main(name string, additions ...Addition) {
	tuneCollector()
	e := programVariant{name, additions}
	os.Exit(e.runCommand(untilStopped(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// untilStopped ends with the first signal to end. A second one ends the process as it is, whenever
// it comes behind what the first one did: nothing ends before signals are left to the system again.
func untilStopped() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, stopSignals()...)
	go func() { // ends with the process
		<-asked
		signal.Stop(asked)
		cancel()
	}()
	return ctx
}

// stopSignals are the signals that ask us to end. A terminal that closes is one, unless we were
// started to outlive it (nohup).
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
