// Package durable writes flows as functions.
//
// A function whose effects are steps survives crashes of its program: after a crash it is called
// again, gets the recorded results of its steps, and goes on behind them.
//
//	func checkout(f *durable.Flow, o Order) (Receipt, error) {
//		res, err := durable.Do(f, "reserve", func(ctx context.Context) (Reservation, error) {
//			return stock.Reserve(ctx, o)
//		}, durable.Retry(5, time.Second))
//		if err != nil {
//			return Receipt{}, err
//		}
//		f.Undo("release", func(ctx context.Context) error { return stock.Release(ctx, res) })
//		…
//	}
//
//	troupe.HandleFlow(engine, "checkout", checkout) // in a program with an engine inside
//	worker.HandleFlow(w, "checkout", checkout)      // in an attached worker
//
// Promises:
//
//   - A step whose result is recorded is never run again in its task. A step that is cut off runs
//     again with the same idempotency key (job.From(ctx).Key()).
//   - The function goes on behind a step when the result of the step is stored.
//   - A replay is checked. A function that asks for another step than the history has is held: its
//     task keeps running, shows the reason, and goes on when a program with fitting code starts, or
//     after a retry.
//   - A failed step fails in replays with the same *Error.
//   - A function that waits (Sleep, Signal, Approve, Ask, Call, Run) costs rows in the store, and
//     no memory after some seconds (KeepWarm of the Config). It is called again when its wait ends.
//
// Call gives a job to the workers of a service, in whatever language. Run runs another flow.
//
// Stream writes values that others read while the function runs, such as the tokens of a model.
//
// Restart begins a function anew, so that one that runs for years stays small.
//
// Go, All, Each and Race run parts of a function side by side. The names of the steps in such a
// branch begin with the name of the branch: pack/3/wrap.
//
// Between steps a function must do the same for the same results: it must not read a clock, random
// numbers, files or the network, or range over a map, to decide what it asks for. Now, Random and
// UUID are the same in every replay. It must not start goroutines that use
// the Flow, and a branch uses only the Flow that it gets.
package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// ErrTimeout is the error of a Signal, an Approve, an Ask, a Call or a Run that did not end in
// time.
var ErrTimeout = conversation.ErrTimeout

// Flow connects a function with its task. Each branch has a Flow of its own.
type Flow struct {
	b      *conversation.Branch
	random *rand.Rand
	ids    int
}

// Error is the error of a step. Each replay returns an equal error.
type Error = conversation.Error

// Func is a function that is a flow. Its input is decoded from the task's params, which are an
// object.
type Func[In, Out any] = func(f *Flow, in In) (Out, error)

// Option configures a step.
type Option struct {
	name string
	set  func(o *conversation.Options)
}

// Retry repeats a failed step up to n times. The first pause is as given; each further pause is
// twice as long, up to a minute. In a long pause the function leaves memory, as in Sleep. An error
// that is job.Fatal is not repeated.
func Retry(n int, pause time.Duration) Option {
	if n < 0 || pause < 0 {
		panic(fmt.Sprintf("durable: Retry(%d, %s) has a negative number", n, pause))
	}
	return Option{"Retry", func(o *conversation.Options) { o.Retries, o.Pause = n, pause }}
}

// Timeout limits each try of a step. After that time the context of the try ends.
func Timeout(d time.Duration) Option {
	return Option{"Timeout", func(o *conversation.Options) { o.Timeout = checkTime("Timeout", d) }}
}

// Within limits how long a Signal, an Approve, an Ask, a Call or a Run waits. After that time the
// wait fails with ErrTimeout, and the job of a Call or the task of a Run is canceled.
func Within(d time.Duration) Option {
	return Option{"Within", func(o *conversation.Options) { o.Within = checkTime("Within", d) }}
}

// checkTime panics for a negative time, because this is a mistake in the program.
func checkTime(name string, d time.Duration) time.Duration {
	if d < 0 {
		panic(fmt.Sprintf("durable: %s(%s) has a negative time", name, d))
	}
	return d
}

// Input records a hash of a value with the step. A replay with another value is held.
func Input(v any) Option {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("durable: an input cannot be written as JSON: %v", err))
	}
	return Option{"Input", func(o *conversation.Options) { o.Hash = hashOf(raw) }}
}

func hashOf(raw []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(raw) // a hash never fails
	return fmt.Sprintf("%016x", h.Sum64())
}

// optionsOf applies the options of a step. It panics for an option that this kind of step does not
// support, because this is a mistake in the program.
func optionsOf(kind string, list []Option, obeyed ...string) (o conversation.Options) {
	for _, option := range list {
		if !slices.Contains(obeyed, option.name) {
			panic(fmt.Sprintf("durable: %s has no effect on %s, which obeys %s", option.name, kind, strings.Join(obeyed, ", ")))
		}
		option.set(&o)
	}
	return o
}

// workOptions are the options of Do and Undo.

var workOptions = []string{"Retry", "Timeout", "Input"}

// Do carries out a step and returns its result. If a result is recorded already, Do returns it
// without a call of run. The nth use of a name in a branch is a separate step.
func Do[T any](f *Flow, name string, run func(ctx context.Context) (T, error), options ...Option) (T, error) {
	raw, err := f.b.Do(name, optionsOf("Do", options, workOptions...), func(ctx context.Context) (json.RawMessage, error) {
		v, err := run(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	})
	return decodeResult[T](name, raw, err)
}

// decodeResult decodes the recorded result of a step into T.
func decodeResult[T any](name string, raw json.RawMessage, err error) (v T, _ error) {
	if err != nil || len(raw) == 0 {
		return v, err
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("step %s: its recorded result does not fit the code: %w", name, err)
	}
	return v, nil
}

// Do carries out a step without a result.
func (f *Flow) Do(name string, run func(ctx context.Context) error, options ...Option) error {
	_, err := f.b.Do(name, optionsOf("Do", options, workOptions...), func(ctx context.Context) (json.RawMessage, error) {
		return nil, run(ctx)
	})
	return err
}

// Sleep waits for a time. A waiting function stays in memory for some seconds, then leaves memory.
// The function is called again when its wait ends. So a wait may last for months and survives
// restarts.
func (f *Flow) Sleep(name string, d time.Duration) {
	if _, err := f.b.Await(conversation.Sleep, name, "", conversation.Options{Within: max(d, 0)}); err != nil {
		panic(err) // only damaged histories lead here
	}
}

// Signal waits until the task gets a signal whose key is name, and returns the value of the signal.
// Earlier signals count, oldest first; each signal ends one wait.
func Signal[T any](f *Flow, name string, options ...Option) (T, error) {
	raw, err := f.b.Await(conversation.Signal, name, name, optionsOf("Signal", options, "Within"))
	return decodeResult[T](name, raw, err)
}

// Undo registers a compensation for the work so far. If the function fails, or its task is canceled
// or exceeds its timeout, the compensations run, newest first, each as a step. They also run after
// a crash.
func (f *Flow) Undo(name string, run func(ctx context.Context) error, options ...Option) {
	f.b.Undo(name, optionsOf("Undo", options, workOptions...), run)
}

// Now returns the current time. The time is recorded, so replays return the same one.
func (f *Flow) Now() time.Time {
	at, err := f.b.Now()
	if err != nil {
		panic(err) // only damaged histories lead here
	}
	return at
}

// Random returns a source of random numbers that is the same in every replay, and different in
// every task and branch.
func (f *Flow) Random() *rand.Rand {
	if f.random == nil {
		h := fnv.New128a()
		_, _ = io.WriteString(h, f.b.Key()) // a hash never fails
		seed := h.Sum(nil)
		f.random = rand.New(rand.NewPCG(readBits(seed[:8]), readBits(seed[8:])))
	}
	return f.random
}

func readBits(b []byte) (n uint64) {
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n
}

// UUID returns a new UUID that is the same in every replay.
func (f *Flow) UUID() string {
	f.ids++
	return uuid.NewSHA1(ids, fmt.Appendf(nil, "%s %d", f.b.Key(), f.ids)).String()
}

// ids is the UUID namespace of Flow.UUID.
var ids = uuid.MustParse("0d2c54a5-6a0f-5a3e-9d0e-3c1f6a1d7b42")

// Set sets a value in the shared state of the task, where pages and programs can read it. The call
// is a recorded step, and the key is the name of the step. Set fails for a value that is too large,
// and for the key "result". Signals set values in the same state. The values outlive a Restart.
func (f *Flow) Set(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("the value %s cannot be written as JSON: %w", key, err)
	}
	return f.b.Set(key, raw)
}

// Restart ends this call of the function and starts the function again with another input. It is
// for functions that run for years. It does not return: write `return result, f.Restart(input)`.
//
// The recorded steps and undos of this call no longer count, so they cost no memory. Signals that
// were not consumed stay. Steps of the new call have new idempotency keys. The task keeps its id,
// its timeout and its history.
func (f *Flow) Restart(input any) error {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("durable: an input cannot be written as JSON: %v", err))
	}
	f.b.Restart(raw)
	return nil // never reached
}

// Version chooses between versions of the code. A task that was already past this point before the
// call of Version was written gets least. Every other task gets newest, which is recorded.
func (f *Flow) Version(name string, least, newest int) int {
	n, err := f.b.Version(name, least, newest)
	if err != nil {
		panic(err) // only damaged histories lead here
	}
	return n
}

// Log writes a line to the log of the task. Replays do not repeat it.
func (f *Flow) Log(format string, args ...any) {
	if !f.b.IsReplaying() {
		_, _ = fmt.Fprintf(f.b.Conversation().Job().Log, format+"\n", args...) // a log never fails
	}
}

// Task returns the id of the task.
func (f *Flow) Task() string { return f.b.Conversation().Job().Task }

// Context returns a context that ends when the function must stop. Use it for calls without
// effects.
func (f *Flow) Context() context.Context { return f.b.Context() }

// New returns the Flow for one call of a function. It is for engines, workers and tests.
func New(c *conversation.Conversation) *Flow { return &Flow{b: c.Main()} }

// Invoke calls a function with the params of its task and returns the result as JSON. It is for
// engines, workers and tests.
func Invoke[In, Out any](c *conversation.Conversation, name string, fn Func[In, Out]) (json.RawMessage, error) {
	var in In
	if err := job.ReadInput(c.Job(), &in); err != nil {
		return nil, job.Fatal(fmt.Errorf("the flow %s: %w", name, err))
	}
	out, err := fn(New(c), in)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, errors.Join(errors.New("the result cannot be written as JSON"), err)
	}
	return raw, nil
}
