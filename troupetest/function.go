package troupetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// FunctionTest is a test of a durable function; see Function.
type FunctionTest[In, Out any] struct {
	t          testing.TB
	fn         durable.Func[In, Out]
	mocks      map[string]conversation.Work
	given      map[string][]json.RawMessage // values of signals and answers, by name
	everyCrash bool
}

// Function returns a test of a durable function. It runs in virtual time, without an engine: its
// steps are called, its sleeps and pauses take no time, and its signals and approvals get the given
// values.
//
//	f := troupetest.Function(t, checkOut).EveryCrash()
//	f.Mock("charge", func(context.Context) (any, error) { return nil, errors.New("declined") })
//	f.Give("paid", Payment{12})
//	r := f.Run(Order{"book", 12})
//	require.NoError(t, r.Err)
func Function[In, Out any](t testing.TB, fn durable.Func[In, Out]) *FunctionTest[In, Out] {
	return &FunctionTest[In, Out]{t: t, fn: fn, mocks: map[string]conversation.Work{}, given: map[string][]json.RawMessage{}}
}

// Mock replaces the function of a step, or of an undo, in all branches. For a Call it replaces the
// workers of the service, and for a Run the flow. job.From(ctx) has the input then.
func (f *FunctionTest[In, Out]) Mock(step string, run func(context.Context) (any, error)) *FunctionTest[In, Out] {
	f.mocks[step] = func(ctx context.Context) (json.RawMessage, error) {
		v, err := run(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	}
	return f
}

// Give adds values that waits for a signal, or for an answer of a person, receive one after
// another. A wait without a value ends by its timeout. Null, false and the empty text do not end a
// wait for a signal.
func (f *FunctionTest[In, Out]) Give(name string, values ...any) *FunctionTest[In, Out] {
	for _, v := range values {
		f.given[name] = append(f.given[name], f.marshalValue(v))
	}
	return f
}

func (f *FunctionTest[In, Out]) marshalValue(v any) json.RawMessage {
	f.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		f.t.Fatalf("a value of the test cannot be written as JSON: %v", err)
	}
	return raw
}

// EveryCrash also calls the function again with each prefix of its history, as after a crash at
// that point. The recorded results answer its steps then. The test fails if the function asks for
// other steps, or ends differently. Typical reasons are a clock, random numbers or the order of a
// map.
func (f *FunctionTest[In, Out]) EveryCrash() *FunctionTest[In, Out] {
	f.everyCrash = true
	return f
}

// FunctionResult is the result of a function in a test.
type FunctionResult[Out any] struct {
	Value    Out
	Err      error          // the error of the function
	Steps    []FunctionStep // in the order in which they were recorded
	Restarts int            // number of restarts of the function
	Took     time.Duration  // in virtual time
	// Streams holds the values that the function and its steps have written, by the name of the
	// stream.
	Streams map[string][]json.RawMessage
}

// FunctionStep is a recorded step of a function.
type FunctionStep struct {
	Name   string // path of the branch, name and number of use: pack/3/wrap#2
	Kind   string // do, now, version, undo, race, set, sleep, retry, signal, approval or call
	Output json.RawMessage
	Error  string
}

// StepsOf returns the recorded steps with a name. The name does not include the path of a branch.
func (r *FunctionResult[Out]) StepsOf(name string) (all []FunctionStep) {
	for _, s := range r.Steps {
		own, _, _ := strings.Cut(ownName(s.Name), "#")
		if own == name {
			all = append(all, s)
		}
	}
	return all
}

func ownName(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// Run runs the function until it ends. The test fails if the function waits for an event that never
// occurs.
func (f *FunctionTest[In, Out]) Run(in In) *FunctionResult[Out] {
	f.t.Helper()
	written := &streamLog{seen: map[streamPlace]bool{}, values: map[string][]json.RawMessage{}}
	r := &FunctionResult[Out]{Streams: written.values}
	var now int64
	given := maps.Clone(f.given)
	for input := f.marshalValue(in); ; r.Restarts++ {
		functionJob := job.WithKey(fmt.Sprint("test ", r.Restarts), job.Job{ID: "test", Task: "test", Params: input})
		functionJob = job.WithStreams(written, functionJob)
		first := &functionRun{call: f.callFunction, functionJob: functionJob, mocks: f.mocks, given: given, now: now}
		o, problem := first.runToEnd(nil)
		if problem == "" && o.Restarts {
			problem = checkRestart(r.Restarts, first.steps, o.Output)
		}
		if problem == "" && f.everyCrash {
			problem = first.replayEveryCrash(o)
		}
		if problem != "" {
			f.t.Fatalf("%s", problem)
		}
		now = first.now
		for i := range first.steps {
			s := &first.steps[i]
			if name := ownName(s.Name); isGiven(s) && len(given[name]) > 0 {
				given[name] = given[name][1:]
			}
			r.Steps = append(r.Steps, FunctionStep{s.Place(), string(s.Kind), s.Output, s.Error})
		}
		if o.Restarts {
			input = o.Output
			continue
		}
		r.Err, r.Took = o.Err, time.Duration(now)*time.Millisecond
		if o.Err == nil {
			if err := json.Unmarshal(o.Output, &r.Value); err != nil {
				f.t.Fatalf("the result %s does not fit its type: %v", o.Output, err)
			}
		}
		return r
	}
}

// maxRestarts is the maximum number of restarts in a test.
const maxRestarts = 10_000

// checkRestart returns the reason why an engine would reject the restart of a function, or "".
func checkRestart(restarts int, steps []conversation.Step, input json.RawMessage) string {
	switch {
	case len(steps) == 0:
		return "the function cannot begin anew: it has run no step and waited for nothing, so this would never end"
	case len(input) == 0 || input[0] != '{':
		return fmt.Sprintf("the function cannot begin anew: its input must be a JSON object, and is %s", input)
	case restarts >= maxRestarts:
		return fmt.Sprintf("the function has begun anew %d times: let it end in the test", restarts)
	}
	return ""
}

// isGiven reports whether a step has consumed a value of Give.
func isGiven(s *conversation.Step) bool {
	return (s.Kind == conversation.Signal || s.Kind == conversation.Approval) && s.Error == ""
}

func (f *FunctionTest[In, Out]) callFunction(c *conversation.Conversation) (json.RawMessage, error) {
	return durable.Invoke(c, "test", f.fn)
}
