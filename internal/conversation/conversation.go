// Package conversation runs a durable function and passes its steps to the engine.
//
// The function asks for steps. A step whose result is recorded is answered from the history. Every
// other step is carried out, and the function continues when the result is stored. Results that
// arrive at the same time are stored together.
//
// A function runs in goroutines of its own: one for the main branch, and one for each other branch.
// The function must stop if another carrier has it, its code does not fit the history, or the task
// is paused. Then a goroutine that asks for the next step ends as by runtime.Goexit, so deferred
// calls run. A recover in the function cannot prevent the end.
//
// Promises: results are in the history in the order in which each branch asked for them. If a
// branch asks for another step than the recorded one, the function is held, with a text that names
// both steps. A wait of one branch begins even while other branches run. When all branches wait,
// the function is given up: it leaves the memory until a wait ends.
package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/job"
)

// Kind is the kind of a step.
type Kind string

// Kinds of steps.
const (
	Do      Kind = "do"      // calls a function
	Now     Kind = "now"     // reads the clock
	Version Kind = "version" // chooses between versions of the code
	Undo    Kind = "undo"    // undoes an earlier step
	Race    Kind = "race"    // records the winner of a race
	Set     Kind = "set"     // sets a value that clients can read

	Sleep    Kind = "sleep"    // waits for a time
	Retry    Kind = "retry"    // waits for the next try of a failed step
	Signal   Kind = "signal"   // waits for a signal
	Approval Kind = "approval" // waits for a decision
	Call     Kind = "call"     // waits for a job of the workers of a service
)

// Step is a step with its result.
type Step struct {
	Name string // name with the path of its branch as the prefix
	Use  int    // number of this use of the name, from 1
	Kind Kind
	Hash string // hash of the input; "" if none was recorded

	Output             json.RawMessage
	Error              string
	Details            json.RawMessage // details of the error
	Tries              int
	StartedAt, EndedAt int64 // Unix milliseconds; EndedAt is set only in a history

	index int // number of steps recorded before this one, as far as the function knows
}

// Place returns the name of the step as shown to users.
func (s *Step) Place() string {
	if s.Use < 2 {
		return s.Name
	}
	return s.Name + "#" + strconv.Itoa(s.Use)
}

// Errors of a Host.
var (
	// ErrOver means that no task waits for the function any longer, or that another carrier has the
	// job.
	ErrOver = errors.New("the function is no longer needed here")
	// ErrPaused means that the results were stored, but the function must stop at this step.
	ErrPaused = errors.New("the task is paused")
)

// Host is the engine's side of a conversation.
type Host interface {
	// Record returns when the results are stored and the waits have begun. The error is ErrOver,
	// ErrPaused, or the permanent reason why they cannot be stored.
	Record(ctx context.Context, steps []*Step, waits []*Wait) error
	// Listen sets the function that receives the ends of waits while other branches run.
	Listen(end func(Step))
	// Now returns the engine's time.
	Now() time.Time
}

// Outcome describes how a function ended or stopped.
type Outcome struct {
	Output   json.RawMessage // output of the function, or its next input
	Restarts bool            // whether the function begins anew
	Err      error           // error of the function
	Fatal    error           // why a result cannot be stored
	Over     bool            // whether the outcome must not be reported
	Held     string          // why the function stopped although its task continues; "" otherwise
	// waits of a function that only waits; see Resume
	Waits []*Wait
	// recorded steps that the function did not ask for
	Unasked []string
	// paths of the branches that were canceled before they returned
	Cut []string
}

// Conversation is one call of a function.
type Conversation struct {
	ctx       context.Context // ends when the job is withdrawn
	job       job.Job
	host      Host
	main      *Branch
	replace   func(s *Step) Work  // see ReplaceWork; may be nil
	pause     func(time.Duration) // see ReplaceWork; may be nil
	nextInput json.RawMessage     // input of the restart that the main branch has asked for
	warm      time.Duration       // maximum pause between tries with the function in memory

	ended  chan Outcome  // receives the outcome when the function returns
	rested chan struct{} // receives a value when the function only waits

	mu        sync.Mutex
	stored    int          // number of recorded steps that the function knows
	gathering *resultBatch // results that are not being stored yet
	storing   bool         // whether a batch is being stored
	stopped   *Outcome
	stop      chan struct{} // closed when stopped is set
	undoes    bool          // whether the function is called to undo its work
	unwound   chan struct{} // closed when the function has repeated its history and undoes
	unwinds   sync.Once
	end       context.CancelCauseFunc
	histories map[string][]*Step // recorded steps of branches that have not begun, by path
	undos     []registeredUndo
	cut       []string // paths of branches that were canceled
	branching
}

// resultBatch is a number of results that are stored together.
type resultBatch struct {
	steps  []*Step
	stored chan struct{}
}

// New returns the conversation of a job. history holds the recorded steps in their order. During
// pauses between tries up to warm, the function stays in memory; for longer pauses it is given up.
func New(ctx context.Context, j job.Job, history []Step, host Host, warm time.Duration) *Conversation {
	c := &Conversation{job: j, host: host, warm: warm, stop: make(chan struct{}), unwound: make(chan struct{}),
		ended: make(chan Outcome, 1), rested: make(chan struct{}, 1), stored: len(history)}
	c.ctx, c.end = context.WithCancelCause(context.WithoutCancel(ctx)) // see awaitOutcome
	if len(history) > 0 {
		c.replays, c.histories = true, map[string][]*Step{}
		for i := range history {
			path := history[i].Name[:strings.LastIndexByte(history[i].Name, '/')+1]
			history[i].index = i
			c.histories[path] = append(c.histories[path], &history[i])
		}
	}
	c.main = c.newBranch(nil, "")
	return c
}

// Main returns the branch of the function itself.
func (c *Conversation) Main() *Branch { return c.main }

// Job returns the job of the function.
func (c *Conversation) Job() job.Job { return c.job }

// ReplaceWork sets the function that replaces the work of steps, for tests. with returns nil for a
// step that keeps its own work. pause replaces the pauses between the tries of undos. ReplaceWork
// must be called before Run.
func (c *Conversation) ReplaceWork(with func(s *Step) Work, pause func(time.Duration)) {
	c.replace, c.pause = with, pause
}

// Undo makes the function only repeat its recorded steps, and then undo them. The outcome is
// ErrCanceled. Undo must be called before Run.
func (c *Conversation) Undo() { c.undoes = true }

// ErrCanceled is the error of a function whose task was canceled.
var ErrCanceled = errors.New("the task was canceled")

// Run calls the function and returns when it has ended, stopped, or only waits. ctx ends when the
// job is withdrawn.
func (c *Conversation) Run(ctx context.Context, fn func() (json.RawMessage, error)) Outcome {
	c.mu.Lock()
	c.startBranch(c.main, func() {
		defer c.main.endWithRestart()
		out, err, returned := callRecovering(fn)
		if returned {
			c.ended <- Outcome{Output: out, Err: err}
		}
	})
	c.mu.Unlock()
	c.host.Listen(c.endWait)
	return c.awaitOutcome(ctx)
}

// awaitOutcome returns when the function has ended, stopped, or only waits.
func (c *Conversation) awaitOutcome(ctx context.Context) Outcome {
	withdrawn := context.AfterFunc(ctx, func() { c.end(ErrOver) })
	defer withdrawn()
	var o Outcome
	for {
		select {
		case <-c.rested:
			if waits := c.giveUp(); waits != nil {
				return Outcome{Waits: waits}
			}
			continue
		case o = <-c.ended:
			if stopped := c.stopReason(); stopped != nil {
				o = *stopped // another branch stopped the function at the same time
				break
			}
			if c.undoes {
				o = Outcome{Err: ErrCanceled}
			}
			if o.Restarts {
				c.stopBranches()
			}
			cut := c.cutBranches()
			o = c.undoAfter(o)
			o.Unasked, o.Cut = c.unaskedSteps(), cut
		case <-c.unwound:
			if stopped := c.stopReason(); stopped != nil {
				o = *stopped // the code does not fit the history, so nothing is undone
				break
			}
			o = c.undoAfter(Outcome{Err: ErrCanceled})
		case <-c.stop:
			o = *c.stopped
		case <-c.ctx.Done():
			o = Outcome{Over: true}
		}
		c.end(ErrOver)
		return o
	}
}

// cutBranches returns the paths of the canceled branches, including the branches canceled by the
// function's end.
func (c *Conversation) cutBranches() (paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for b := range c.live {
		if b != c.main && !b.returned {
			paths = append(paths, b.path)
		}
	}
	return append(paths, c.cut...)
}

// callRecovering calls a function. A panic becomes an error. returned is false if its goroutine is
// ending.
func callRecovering(fn func() (json.RawMessage, error)) (out json.RawMessage, err error, returned bool) {
	defer func() {
		if p := recover(); p != nil {
			out, err, returned = nil, fmt.Errorf("panic: %v\n%s", p, firstLines(debug.Stack(), 12)), true
		}
	}()
	out, err = fn()
	return out, err, true
}

func firstLines(text []byte, n int) string {
	lines := strings.SplitN(string(text), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// haltFunction stops the function for a reason and ends the calling goroutine.
func (c *Conversation) haltFunction(o Outcome) {
	c.stopFunction(o)
	runtime.Goexit()
}

// stopFunction stops the function for a reason. The first reason counts.
func (c *Conversation) stopFunction(o Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped == nil {
		c.stopped = &o
		close(c.stop)
		c.end(ErrOver)
	}
}

// stopReason returns why the function must stop, or nil.
func (c *Conversation) stopReason() *Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}

// recordResult returns when a result is stored, together with other results that ended meanwhile.
func (b *Branch) recordResult(s *Step) {
	c := b.c
	c.mu.Lock()
	if c.gathering == nil {
		c.gathering = &resultBatch{stored: make(chan struct{})}
	}
	mine := c.gathering
	mine.steps = append(mine.steps, s)
	if !c.storing {
		c.storing, c.gathering = true, nil
		c.mu.Unlock()
		c.storeBatch(mine)
	} else {
		c.mu.Unlock()
		select {
		case <-mine.stored:
		case <-c.stop:
			runtime.Goexit()
		}
	}
	b.noteResult(s)
	b.checkFunction()
}

// maxBatch is the maximum number of results that are stored at once, and of waits that begin at
// once.
const maxBatch = 256

// storeBatch stores a batch of results, and begins pending waits. Another goroutine stores the
// results that have gathered meanwhile.
func (c *Conversation) storeBatch(b *resultBatch) {
	c.mu.Lock()
	n := min(len(c.unsent), maxBatch)
	waits := slices.Clone(c.unsent[:n])
	c.unsent = slices.Delete(c.unsent, 0, n)
	c.mu.Unlock()
	err := c.storeSteps(b.steps, waits)
	c.mu.Lock()
	next := c.gathering
	if next == nil && (len(c.unsent) > maxBatch || len(c.unsent) > 0 && c.running > 0) {
		next = &resultBatch{stored: make(chan struct{})}
	}
	c.gathering = nil
	c.storing = next != nil
	c.mu.Unlock()
	if next != nil && err == nil {
		go c.storeBatch(next)
	}
	switch {
	case err == nil:
		close(b.stored)
		c.mu.Lock()
		c.noteChange() // the function may have waited only for this batch
		c.mu.Unlock()
	case errors.Is(err, ErrOver):
		c.haltFunction(Outcome{Over: true})
	case errors.Is(err, ErrPaused):
		c.haltFunction(Outcome{Held: ErrPaused.Error()})
	default:
		c.haltFunction(Outcome{Fatal: err})
	}
}

func (c *Conversation) storeSteps(steps []*Step, waits []*Wait) error {
	for len(steps) > maxBatch {
		if err := c.storeSome(steps[:maxBatch], nil); err != nil {
			return err
		}
		steps = steps[maxBatch:]
	}
	return c.storeSome(steps, waits)
}

func (c *Conversation) storeSome(steps []*Step, waits []*Wait) error {
	err := c.host.Record(c.ctx, steps, waits)
	if err == nil {
		c.countStored(steps...)
	}
	if err == nil || errors.Is(err, ErrOver) || errors.Is(err, ErrPaused) {
		return err
	}
	for _, s := range steps { // one of the results cannot be stored, so each is stored alone
		if err := c.storeAlone(s); err != nil {
			return err
		}
	}
	if len(waits) > 0 {
		return c.host.Record(c.ctx, nil, waits)
	}
	return nil
}

// storeAlone stores a result. If the result is too large, it stores this failure as the error of
// the step.
func (c *Conversation) storeAlone(s *Step) error {
	err := c.host.Record(c.ctx, []*Step{s}, nil)
	if err != nil && !errors.Is(err, ErrOver) && !errors.Is(err, ErrPaused) {
		s.Output, s.Details, s.Error = nil, nil, err.Error()
		err = c.host.Record(c.ctx, []*Step{s}, nil)
	}
	if err == nil {
		c.countStored(s)
	}
	return err
}

// countStored numbers the steps that were just stored.
func (c *Conversation) countStored(steps ...*Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range steps {
		s.index = c.stored
		c.stored++
	}
}

// unaskedSteps returns the recorded steps that no branch has asked for.
func (c *Conversation) unaskedSteps() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := [][]*Step{c.main.history[c.main.at:]}
	for _, steps := range c.histories {
		left = append(left, steps)
	}
	for _, s := range slices.Concat(left...) {
		if s.Kind != Undo {
			names = append(names, s.Place())
		}
	}
	return names
}
