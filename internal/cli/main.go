// Package cli is the command line: a member of the workflow engine, its workers, and the commands
// to publish flows and to start and follow tasks. A program consists of a name and the additions to
// its members.
//
//   - Flow and task commands use only a server's /v1, so they work with any local or remote member;
//     flow test needs none.
//   - The exit code is 0 when the command has succeeded, 1 when it failed (also when the task that
//     it waited for failed), and 2 when the command line, or a file given to flow test, was wrong.
//   - Results go to stdout, everything else to stderr.
//
// The commands are in packages by their objects: serve (a member), flows, tasks, schedules, workers
// and operate. Their common parts are in console. This package joins the commands, and has the
// parser, completion and the reference.
package cli

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/garbage"
)

// softMemory is the heap size above which garbage is collected more often. Large requests make the
// heap large for a while, and the default collector would then let as much garbage gather. The size
// is no limit: memory in use may exceed it. GOMEMLIMIT, if set, has precedence.
const softMemory = 736 << 20

// tuneCollector configures the garbage collector where the environment does not.
func tuneCollector() {
	garbage.Bound()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}
}

// Main runs the program under the given name.
func Main(name string, additions ...console.Addition) {
	tuneCollector()
	e := console.Program{Name: name, Additions: additions}
	os.Exit(runCommandLine(untilStopped(), e, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// untilStopped returns a context that ends with the first stop signal. A second signal kills the
// process, because the default signal handling is restored before the context ends.
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

// stopSignals returns the signals that stop the process. The hangup of a terminal is included,
// unless the process was started with nohup.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
