package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/job"
)

// Branch is a part of a function whose steps follow one another. Only one goroutine may use it at a
// time.
type Branch struct {
	c       *Conversation
	ctx     context.Context
	cancel  context.CancelFunc // nil for the main branch
	path    string             // prefix of the names of its steps: "" or a path that ends with a slash
	history []*Step            // its recorded steps
	at      int                // number of those that were asked for
	uses    map[string]int
	group   *group // the branches that were started with it; nil for the main branch
	output  *branchOutput

	// written with the mutex of the conversation
	last     int  // index of the last result that it got; -1 if none
	spent    bool // it lost its race, so it only repeats its recorded steps
	blocked  bool // it waits
	busy     bool // it carries out a step
	returned bool // its function has returned
	ended    bool // its goroutine has ended
	until    func() bool
	woken    chan struct{}
}

// newBranch returns a branch inside another one. The caller holds the mutex.
func (c *Conversation) newBranch(parent *Branch, path string) *Branch {
	b := &Branch{c: c, ctx: c.ctx, path: path, uses: map[string]int{}, output: &branchOutput{}, last: -1}
	if parent != nil {
		b.ctx, b.cancel = context.WithCancel(parent.ctx)
		b.last = parent.last
	}
	b.history = c.histories[path]
	delete(c.histories, path)
	return b
}

// Context returns the context of the branch. It ends when the branch must stop.
func (b *Branch) Context() context.Context { return b.ctx }

// Conversation returns the conversation of the branch.
func (b *Branch) Conversation() *Conversation { return b.c }

// IsReplaying reports whether the branch still gets results from the history.
func (b *Branch) IsReplaying() bool { return b.at < len(b.history) }

func numberedName(name string, use int) string {
	if use < 2 {
		return name
	}
	return name + "#" + strconv.Itoa(use)
}

// checkName panics for a name that a step cannot have: that is an error of the program.
func checkName(name string) {
	if name == "" || strings.ContainsAny(name, "/#") || name[0] == '~' {
		panic(fmt.Sprintf("durable: a step cannot have the name %q: write a name without / and #, and without ~ in front", name))
	}
}

func (b *Branch) useOf(name string) int {
	b.uses[name]++
	return b.uses[name]
}

// endGoroutine ends the goroutine of a branch that must stop.
func (b *Branch) endGoroutine() {
	if b.c.ctx.Err() != nil {
		b.c.haltFunction(Outcome{Over: true})
	}
	runtime.Goexit()
}

// checkGoing ends the goroutine of the branch if it must stop.
func (b *Branch) checkGoing() {
	if b.ctx.Err() != nil {
		b.endGoroutine()
	}
}

// checkFunction ends the goroutine of the branch if the whole function must stop. A branch that was
// canceled goes on: the result of its last step is recorded, and that step may register an undo.
func (b *Branch) checkFunction() {
	if b.c.ctx.Err() != nil {
		b.endGoroutine()
	}
}

// takeStep begins a step. It returns the recorded step, or the new one without a result. It holds
// the function if the history has another step here.
func (b *Branch) takeStep(s *Step) (_ *Step, recorded bool) {
	if s.Kind != Undo && b.isAtEnd() && (b.c.undoes || b.isSpent()) {
		b.endGoroutine()
	}
	if b.at == len(b.history) {
		b.checkGoing()
		return s, false
	}
	was := b.history[b.at]
	asked, has := s.describeStep(), was.describeStep()
	if asked == has && s.Hash != was.Hash && was.Hash != "" && s.Hash != "" {
		has, asked = "one input", "another one"
	}
	if asked != has {
		b.c.haltFunction(Outcome{Held: fmt.Sprintf("nondeterministic: at step %s the history has %s, the code asked for %s",
			was.Place(), has, asked)})
	}
	b.at++
	b.noteResult(was)
	return was, true
}

// noteResult notes which result of the function the branch has got last.
func (b *Branch) noteResult(s *Step) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.last = s.index
}

// isAtEnd reports whether the branch has repeated its recorded steps, except those that undo. A
// branch inside another one whose work was undone never goes on.
func (b *Branch) isAtEnd() bool {
	if b.at == len(b.history) {
		return true
	}
	if b.history[b.at].Kind != Undo {
		return false
	}
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.spent = b.spent || b != b.c.main
	return true
}

// isSpent reports whether the branch only repeats its recorded steps.
func (b *Branch) isSpent() bool {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	return b.spent
}

func (s *Step) describeStep() string { return string(s.Kind) + " " + s.Place() }

// Work is the work of a step.
type Work = func(ctx context.Context) (json.RawMessage, error)

// Options are the options of a step.
type Options struct {
	Retries int           // number of further tries after a failure
	Pause   time.Duration // pause before the first of them; each further one is twice as long
	Timeout time.Duration // of each try; 0 if unlimited
	Hash    string        // hash of the input; "" for none
	Within  time.Duration // of a wait; 0 if unlimited
	Over    string        // how the job of a call travels; "" for push
	Name    string        // name of a call; "" for that of its service

	Question *Question // of a decision; nil for none
}

// SetQuestion returns the question of the options, which it creates if there is none.
func (o *Options) SetQuestion() *Question {
	if o.Question == nil {
		o.Question = &Question{}
	}
	return o.Question
}

// pauseAfter returns the pause after a number of tries.
func (o *Options) pauseAfter(tries int) time.Duration {
	pause := o.Pause
	for ; tries > 1 && pause < maxPause; tries-- {
		pause *= 2
	}
	return min(pause, maxPause)
}

// maxPause is the maximum pause between two tries.
const maxPause = time.Minute

// Do carries out a step, or returns its recorded result.
func (b *Branch) Do(name string, o Options, run Work) (json.RawMessage, error) {
	return b.doStep(Do, name, o, run)
}

func (b *Branch) doStep(kind Kind, name string, o Options, run Work) (json.RawMessage, error) {
	checkName(name)
	s := &Step{Name: b.path + name, Use: b.useOf(name), Kind: kind, Hash: o.Hash}
	b.skipRetries(s)
	s, recorded := b.takeStep(s)
	if !recorded {
		b.setBusy(true)
		if b.c.replace != nil {
			if work := b.c.replace(s); work != nil {
				run = work
			}
		}
		b.carryOut(s, o, run)
		b.recordResult(s)
		b.setBusy(false)
	}
	return s.Output, s.stepError()
}

// carryOut tries a step until it succeeds or its tries are used up.
func (b *Branch) carryOut(s *Step, o Options, run Work) {
	s.StartedAt = b.c.host.Now().UnixMilli()
	defer b.noteTry(nil)
	for {
		s.Tries++
		ctx := b.contextOf(s)
		b.noteTry(s)
		out, err := tryOnce(ctx, o.Timeout, run)
		if b.ctx.Err() != nil && err != nil {
			b.endGoroutine() // the step failed because it was cut off
		}
		if err == nil {
			b.checkFunction()
			s.Output, s.Error, s.Details = out, "", nil
			return
		}
		s.Error, s.Details = textOf(err), job.DetailsOf(err)
		if job.IsFatal(err) || s.Tries > o.Retries || !b.pauseTries(ctx, s, o.pauseAfter(s.Tries)) {
			b.checkGoing()
			return
		}
	}
}

// contextOf returns the context of a step. Its job has the idempotency key of the step.
func (b *Branch) contextOf(s *Step) context.Context {
	j := b.c.job
	key := j.Key() + "/" + s.Place()
	j.ID, j.Step = j.ID+"/"+s.Place(), s.Place()
	ctx := job.With(b.ctx, job.WithKey(key, j), nil)
	job.NoteTry(ctx, s.Tries)
	return ctx
}

// tryOnce calls the function of a step. A panic becomes an error.
func tryOnce(ctx context.Context, timeout time.Duration, run Work) (json.RawMessage, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	out, err, returned := callRecovering(func() (json.RawMessage, error) { return run(ctx) })
	switch {
	case !returned:
		return nil, errors.New("the step ended its goroutine")
	case err != nil && timeout > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("timeout: the step took longer than %s: %w", timeout, err)
	}
	return out, err
}

func textOf(err error) string {
	if text := err.Error(); text != "" {
		return text
	}
	return "failed"
}

// sleepFor returns false if the context ends first.
func sleepFor(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Error is the error of a step, as the function gets it: the same now and in a replay.
type Error struct {
	Step    string
	Text    string
	Details json.RawMessage // details that the step gave with its error; nil if none
	Waited  bool            // it is a wait whose time is over
}

func (e *Error) Error() string { return "step " + e.Step + ": " + e.Text }

// Is reports whether the step is a wait whose time is over, for ErrTimeout.
func (e *Error) Is(target error) bool { return target == ErrTimeout && e.Waited }

// ErrTimeout is the error of a wait whose time is over.
var ErrTimeout = errors.New("the time of the wait is over")

func (s *Step) stepError() error {
	if s.Error == "" {
		return nil
	}
	waited := s.Kind == Signal || s.Kind == Approval || s.Kind == Call && s.Error == ErrTimeout.Error()
	return &Error{s.Place(), s.Error, s.Details, waited}
}
