package troupetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// functionRun is one run of a function, with all calls that its waits and simulated crashes need.
type functionRun struct {
	call        func(*conversation.Conversation) (json.RawMessage, error)
	functionJob job.Job
	mocks       map[string]conversation.Work
	given       map[string][]json.RawMessage
	now         int64 // virtual time in milliseconds

	mu    sync.Mutex
	steps []conversation.Step
	begun map[stepKey]int64 // times at which the waits began
	calls map[stepKey]*endedCall

	// The following fields are set in a replay. known and order describe the steps of the first
	// run.
	known       map[stepKey]*conversation.Step
	order       map[stepKey]int
	differs     []stepDifference
	otherWinner bool // another branch won a race; the function is not at fault
}

// stepKey identifies a step of a function. A pause between the tries of a step has the place of
// that step, so tries distinguishes such pauses.
type stepKey struct {
	place string
	tries int
}

func keyOf(s *conversation.Step) stepKey {
	if s.Kind == conversation.Retry {
		return stepKey{s.Place(), s.Tries}
	}
	return stepKey{place: s.Place()}
}

// stepDifference is a step of a replay that differs from the same step of the first run.
type stepDifference struct{ name, text string }

// functionCall is the host of one call of the function.
type functionCall struct {
	*functionRun
	over bool // the call is over; later records do not count
}

func (c *functionCall) endCall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// passTime advances the virtual time between the tries of an undo.
func (c *functionCall) passTime(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d.Milliseconds()
}

// stepLimit is the maximum real time that a function may take until its next step.
const stepLimit = 30 * time.Second

// runToEnd runs the function with a history until it ends. It returns the problem that prevents the
// end, or "".
func (r *functionRun) runToEnd(history []conversation.Step) (o conversation.Outcome, problem string) {
	r.steps, r.begun, r.calls = slices.Clone(history), map[stepKey]int64{}, map[stepKey]*endedCall{}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
		host := &functionCall{functionRun: r}
		c := conversation.New(ctx, r.functionJob, slices.Clone(r.steps), host, 0)
		c.ReplaceWork(r.workOf, host.passTime)
		o = c.Run(ctx, func() (json.RawMessage, error) { return r.call(c) })
		cancel()
		host.endCall()
		switch {
		case o.Over:
			return o, fmt.Sprintf("the function has not come to its next step within %s: mock the step that waits", stepLimit)
		case o.Held != "":
			return o, o.Held
		case o.Fatal != nil:
			return o, o.Fatal.Error()
		case len(o.Waits) == 0:
			return o, ""
		case r.otherWinner:
			c.Drop()
			return o, ""
		}
		if problem = r.endWait(o.Waits); problem != "" {
			c.Drop()
			return o, problem
		}
		c.Drop()
	}
}

// Record stores steps, and in a replay compares them with the first run.
func (c *functionCall) Record(_ context.Context, steps []*conversation.Step, _ []*conversation.Wait) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return conversation.ErrOver
	}
	for _, s := range steps {
		if c.known != nil {
			c.compareStep(s)
		}
		c.steps = append(c.steps, *s)
	}
	return nil
}

// compareStep compares a step of a replay with the same step of the first run.
func (r *functionRun) compareStep(s *conversation.Step) {
	was := r.known[keyOf(s)]
	switch {
	case was == nil:
		r.addDifference(s, "it asked for %s %s, which it had not asked for before")
	case was.Kind != s.Kind || was.Hash != s.Hash:
		r.addDifference(s, "it asked for %s %s with another kind or input than before")
	case s.Kind == conversation.Race && string(was.Output) != string(s.Output):
		r.otherWinner = true
	}
}

func (r *functionRun) addDifference(s *conversation.Step, text string) {
	r.differs = append(r.differs, stepDifference{s.Name, fmt.Sprintf(text, s.Kind, s.Place())})
}

// Listen does nothing, because waits end only after the function has left memory.
func (*functionCall) Listen(func(conversation.Step)) {}

// Now returns the virtual time. It starts at the beginning of the year 2000.
func (c *functionCall) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(c.now) * time.Millisecond)
}

// workOf returns the function that replaces that of a step. In a replay it returns the recorded
// result, else the mock; nil if there is neither.
func (r *functionRun) workOf(s *conversation.Step) conversation.Work {
	if was := r.known[keyOf(s)]; was != nil {
		return func(context.Context) (json.RawMessage, error) {
			if was.Error != "" {
				return nil, job.Fatal(&recordedError{was.Error, was.Details})
			}
			return was.Output, nil
		}
	}
	if s.Kind == conversation.Do || s.Kind == conversation.Undo {
		return r.mocks[ownName(s.Name)]
	}
	return nil
}

// recordedError is the error of a step in a replay.
type recordedError struct {
	text    string
	details json.RawMessage
}

func (e *recordedError) Error() string                 { return e.text }
func (e *recordedError) ErrorDetails() json.RawMessage { return e.details }

// endWait ends the wait that ends first. It returns a problem if no wait can end.
func (r *functionRun) endWait(waits []*conversation.Wait) (problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first *conversation.Step
	var at int64
	for _, w := range waits {
		if _, there := r.begun[keyOf(&w.Step)]; !there {
			r.begun[keyOf(&w.Step)] = r.now
		}
		s, end := r.endOf(w)
		if s != nil && r.known == nil && s.Error == "" && s.Kind == conversation.Signal && !endsWait(s.Output) {
			return fmt.Sprintf("the value %s ends no wait for the signal %s: give another one", s.Output, w.Key)
		}
		if s != nil && (first == nil || end < at) {
			first, at = s, end
		}
	}
	if first == nil {
		if r.known != nil {
			return fmt.Sprintf("it waited for %s %s, which it had not waited for before", waits[0].Kind, waits[0].Place())
		}
		if w := waits[0]; w.Kind == conversation.Call && w.Job.Flow != "" {
			return fmt.Sprintf("the function runs the flow %s, which is not there in a test: mock it with Mock(%q, …)",
				w.Job.Flow, ownName(w.Name))
		}
		if w := waits[0]; w.Kind == conversation.Call {
			return fmt.Sprintf("the function calls the service %s, which has no workers in a test: mock it with Mock(%q, …)",
				w.Job.Service, ownName(w.Name))
		}
		return fmt.Sprintf("the function waits for the %s %s, which never comes: give it a value with Give(%q, …)",
			waits[0].Kind, waits[0].Place(), waits[0].Key)
	}
	r.now = max(r.now, at)
	r.steps = append(r.steps, *first)
	return ""
}

// endsWait reports whether the value of a signal ends a wait.
func endsWait(v json.RawMessage) bool {
	return !slices.Contains([]string{"null", "false", `""`}, string(v))
}

// endOf returns the end of a wait and its time; nil if the wait does not end.
func (r *functionRun) endOf(w *conversation.Wait) (*conversation.Step, int64) {
	if r.known != nil { // in the order of the first run
		if was := r.known[keyOf(&w.Step)]; was != nil {
			return was, int64(r.order[keyOf(&w.Step)])
		}
		return nil, 0
	}
	begun := r.begun[keyOf(&w.Step)]
	if w.Kind == conversation.Call {
		return r.endOfCall(w, begun)
	}
	s, limit := w.Step, begun+w.For.Milliseconds()
	s.Error, s.StartedAt = "", begun
	if w.Kind == conversation.Sleep || w.Kind == conversation.Retry {
		return &s, limit
	}
	if values := r.given[w.Key]; r.countUsed(w) < len(values) {
		s.Output = values[r.countUsed(w)]
		return &s, r.now
	}
	if w.For > 0 {
		s.Error = "timeout"
		return &s, limit
	}
	return nil, 0
}

// endedCall is the end of a call with the time of the end.
type endedCall struct {
	step *conversation.Step
	at   int64
}

// endOfCall returns the end of a call and its time, as computed by the mock; nil if there is no
// mock.
func (r *functionRun) endOfCall(w *conversation.Wait, begun int64) (*conversation.Step, int64) {
	if ended := r.calls[keyOf(&w.Step)]; ended != nil {
		return ended.step, ended.at
	}
	mock := r.mocks[ownName(w.Name)]
	if mock == nil {
		return nil, 0
	}
	s, at := w.Step, begun
	s.StartedAt = begun
	called := job.Job{ID: "test/" + w.Place(), Task: "test", Step: w.Place(), Service: w.Job.Service, Input: w.Job.Input}
	ctx := job.With(context.Background(), job.WithKey(r.functionJob.Key()+"/"+w.Place(), called), nil)
	for pause := w.Job.Pause; ; pause *= 2 {
		s.Tries++
		out, err := mock(ctx)
		if s.Output, s.Error, s.Details = out, "", nil; err == nil {
			break
		}
		s.Error, s.Details = err.Error(), job.DetailsOf(err)
		if job.IsFatal(err) || s.Tries > w.Job.Retries {
			break
		}
		at += pause.Milliseconds()
	}
	if limit := begun + w.For.Milliseconds(); w.For > 0 && at > limit {
		s.Output, s.Details, s.Error, at = nil, nil, durable.ErrTimeout.Error(), limit
	}
	r.calls[keyOf(&w.Step)] = &endedCall{&s, at}
	return &s, at
}

// countUsed returns how many of the given values were consumed for the name of a wait.
func (r *functionRun) countUsed(w *conversation.Wait) (n int) {
	for i := range r.steps {
		if s := &r.steps[i]; isGiven(s) && ownName(s.Name) == w.Key {
			n++
		}
	}
	return n
}

// replayEveryCrash calls the function again with each prefix of its history. It returns the first
// difference, or "".
func (r *functionRun) replayEveryCrash(o conversation.Outcome) (problem string) {
	known, order := map[stepKey]*conversation.Step{}, map[stepKey]int{}
	for i := range r.steps {
		key := keyOf(&r.steps[i])
		known[key], order[key] = &r.steps[i], i
	}
	for k := range len(r.steps) + 1 {
		replay := &functionRun{call: r.call, functionJob: job.WithStreams(nil, r.functionJob), mocks: r.mocks, given: r.given,
			known: known, order: order}
		o2, problem := replay.runToEnd(r.steps[:k])
		if problem == "" {
			problem = replay.compareEnd(r.steps, o, o2)
		}
		if problem != "" {
			after := "before its first step"
			if k > 0 {
				after = "behind the step " + r.steps[k-1].Place()
			}
			return fmt.Sprintf("nondeterministic: after a crash %s the function differs: %s", after,
				strings.TrimPrefix(problem, "nondeterministic: "))
		}
	}
	return ""
}

// compareEnd compares the end of a replay with the end of the first run. Steps of canceled branches
// may be recorded or missing.
func (r *functionRun) compareEnd(first []conversation.Step, o, again conversation.Outcome) string {
	if r.otherWinner {
		return ""
	}
	cut := append(slices.Clone(o.Cut), again.Cut...)
	isCut := func(name string) bool {
		return slices.ContainsFunc(cut, func(path string) bool { return strings.HasPrefix(name, path) })
	}
	for _, d := range r.differs {
		if !isCut(d.name) {
			return d.text
		}
	}
	asked := map[stepKey]bool{}
	for i := range r.steps {
		asked[keyOf(&r.steps[i])] = true
	}
	for i := range first {
		if s := &first[i]; s.Kind != conversation.Retry && !asked[keyOf(s)] && !isCut(s.Name) {
			return "it did not ask for the step " + s.Place()
		}
	}
	switch {
	case errorText(o.Err) != errorText(again.Err):
		return fmt.Sprintf("it ended with the error %q, and before with %q", errorText(again.Err), errorText(o.Err))
	case string(o.Output) != string(again.Output) || o.Restarts != again.Restarts:
		return fmt.Sprintf("it returned %s, and before %s", again.Output, o.Output)
	case len(again.Unasked) > 0:
		return "it did not ask for the step " + again.Unasked[0]
	}
	return ""
}

// errorText returns the text of an error. For a panic it returns the first line only, because the
// stack differs between runs.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if strings.HasPrefix(text, "panic: ") {
		text, _, _ = strings.Cut(text, "\n")
	}
	return text
}
