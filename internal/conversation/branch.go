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

// Branch is a part of a function whose steps follow one another. Only one goroutine may use a
// branch at a time.
type Branch struct {
	c       *Conversation
	ctx     context.Context
	cancel  context.CancelFunc // nil for the main branch
	path    string             // prefix of the names of its steps; "" or ends with "/"
	history []*Step            // recorded steps of the branch
	at      int                // number of recorded steps that the branch has asked for
	uses    map[string]int
	group   *group // branches that were started together with this one; nil for the main branch
	output  *branchOutput

	// the mutex of the conversation guards writes of the following fields
	last     int  // index of the last result that the branch got; -1 if none
	spent    bool // whether the branch lost its race, so that it only repeats its recorded steps
	blocked  bool // whether the branch waits
	busy     bool // whether the branch carries out a step
	returned bool // whether the function of the branch has returned
	ended    bool // whether the goroutine of the branch has ended
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

// IsReplaying reports whether the next step of the branch has a recorded result.
func (b *Branch) IsReplaying() bool { return b.at < len(b.history) }

func numberedName(name string, use int) string {
	if use < 2 {
		return name
	}
	return name + "#" + strconv.Itoa(use)
}

// checkName panics for an invalid name of a step, because such a name is an error of the program.
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

// checkGoing ends the goroutine of the branch if the branch must stop.
func (b *Branch) checkGoing() {
	if b.ctx.Err() != nil {
		b.endGoroutine()
	}
}

// checkFunction ends the goroutine of the branch if the whole function must stop. A canceled branch
// continues, because the result of its last step is recorded, and may be followed by an undo.
func (b *Branch) checkFunction() {
	if b.c.ctx.Err() != nil {
		b.endGoroutine()
	}
}

// takeStep begins a step. It returns the recorded step, or s without a result. If another step is
// recorded at this point, the function is held.
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

// noteResult stores the index of the last result that the branch has got.
func (b *Branch) noteResult(s *Step) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.last = s.index
}

// isAtEnd reports whether the branch has repeated its recorded steps, except compensations. An
// inner branch whose work was undone stays at its end.
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
	Pause   time.Duration // pause before the first retry; doubled for each further retry
	Timeout time.Duration // time limit of each try; 0 means unlimited
	Hash    string        // hash of the input; "" means none
	Within  time.Duration // time limit of a wait; 0 means unlimited
	Over    string        // transport of a call's job; "" means push
	Name    string        // name of a call; "" means the name of its service

	Question *Question // question of a decision; nil means none
}

// SetQuestion returns the question of the options, and creates a missing one.
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
			b.endGoroutine() // the step failed because its context was canceled
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

// sleepFor returns true after the pause, and false if the context ends first.
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

// Error is the error of a step as returned to the function, equal in every replay.
type Error struct {
	Step    string
	Text    string
	Details json.RawMessage // details that the step added to its error; nil means none
	Waited  bool            // whether a wait has exceeded its time limit
}

func (e *Error) Error() string { return "step " + e.Step + ": " + e.Text }

// Is reports whether the error is a wait that exceeded its time limit, for ErrTimeout.
func (e *Error) Is(target error) bool { return target == ErrTimeout && e.Waited }

// ErrTimeout is the error of a wait that exceeded its time limit.
var ErrTimeout = errors.New("the time of the wait is over")

func (s *Step) stepError() error {
	if s.Error == "" {
		return nil
	}
	waited := s.Kind == Signal || s.Kind == Approval || s.Kind == Call && s.Error == ErrTimeout.Error()
	return &Error{s.Place(), s.Error, s.Details, waited}
}
