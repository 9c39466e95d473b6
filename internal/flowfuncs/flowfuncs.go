// Package flowfuncs calls the durable functions of a program, for members and workers.
//
// A delivery of the job of a function is one call. Recorded steps are answered from the history of
// the job. A function that only waits stays in memory for a while, so that its next delivery needs
// no replay.
//
// Promises: calls of one job never run side by side. The number of functions that wait in memory is
// bounded.
package flowfuncs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// Func is a durable function. It asks for its steps in the conversation.
type Func = func(c *conversation.Conversation) (json.RawMessage, error)

// Functions are the durable functions of a program, by name.
type Functions struct {
	funcs   sync.Map // values of type Func, by name
	running sync.Map // values of type chan struct{}, by job; closed when the function has stopped
	warm    *warmFlows
}

// New returns Functions without a function. A waiting function stays in memory for keepWarm.
func New(keepWarm time.Duration) *Functions {
	return &Functions{warm: &warmFlows{keep: keepWarm, functions: map[string]*warmFlow{}}}
}

// DropWaiting ends the functions that wait in memory.
func (f *Functions) DropWaiting() { f.warm.dropAll() }

// Register adds a function, and replaces an earlier function of the same name.
func (f *Functions) Register(name string, fn Func) { f.funcs.Store(name, fn) }

// Has reports whether there is a function of a name.
func (f *Functions) Has(name string) bool {
	_, ok := f.funcs.Load(name)
	return ok
}

// Call is the call of a function for one delivery of its job.
type Call struct {
	functions *Functions
	fn        Func
	job       string
	done      func()
}

// Begin begins a call for a delivery of a job, after an earlier call of the job has stopped. If no
// call is possible, held is the reason: the program lacks the function, or an earlier call does not
// stop.
func (f *Functions) Begin(ctx context.Context, name, job string) (c *Call, held string) {
	found, ok := f.funcs.Load(name)
	if !ok {
		return nil, "this program has no flow " + name + ": register it with HandleFlow and start the program again"
	}
	done, free := f.awaitPrevious(ctx, job)
	if !free {
		return nil, "an earlier call of the function " + name + " has not stopped yet"
	}
	return &Call{f, found.(Func), job, done}, ""
}

// stopGrace is the time that a call may take to stop before the next call of its job is held.
const stopGrace = 10 * time.Second

// awaitPrevious waits until an earlier call of the same job has stopped.
func (f *Functions) awaitPrevious(ctx context.Context, id string) (done func(), free bool) {
	mine := make(chan struct{})
	for {
		earlier, busy := f.running.LoadOrStore(id, mine)
		if !busy {
			return func() { f.running.Delete(id); close(mine) }, true
		}
		timer := time.NewTimer(stopGrace)
		defer timer.Stop()
		select {
		case <-earlier.(chan struct{}):
		case <-timer.C:
			return nil, false
		case <-ctx.Done():
			return nil, false
		}
	}
}

// End ends the call. The next call of the job may begin.
func (c *Call) End() { c.done() }

// Delivery is a delivered job of a function.
type Delivery struct {
	Job    job.Job
	Steps  []conversation.Step // recorded steps
	Undoes bool                // whether the function is called to undo its work
	Host   conversation.Host
}

// Result is the result of a call.
type Result struct {
	Output   json.RawMessage // output of the function, or its next input
	Restarts bool            // whether the function begins anew
	Error    string          // why the function has failed; "" if it succeeded
	Details  json.RawMessage // details of the error
	Fatal    bool            // the error is permanent
	Over     bool            // whether the result must not be reported
	Held     string          // why the function stopped although its task continues; "" otherwise
	Waits    []*conversation.Wait
}

// Run calls the function from its beginning, or continues the function that waits in memory. ctx
// contains the job and ends when the job is withdrawn.
func (c *Call) Run(ctx context.Context, d Delivery) Result {
	talk, o := c.runConversation(ctx, d)
	if len(o.Waits) > 0 {
		c.functions.warm.addFunction(c.job, talk)
	}
	if len(o.Unasked) > 0 && d.Job.Log != nil {
		// a log never fails
		_, _ = fmt.Fprintf(d.Job.Log, "the code did not ask for these recorded steps: %s\n", strings.Join(o.Unasked, ", "))
	}
	return resultOf(o)
}

func (c *Call) runConversation(ctx context.Context, d Delivery) (*conversation.Conversation, conversation.Outcome) {
	warm := c.functions.warm
	if talk := warm.takeFunction(c.job); talk != nil {
		if !d.Undoes && talk.CanResume(d.Steps) {
			return talk, talk.Resume(ctx, d.Job, d.Steps, d.Host)
		}
		talk.Drop()
	}
	talk := conversation.New(ctx, d.Job, d.Steps, d.Host, warm.keep)
	if d.Undoes {
		talk.Undo()
	}
	return talk, talk.Run(ctx, func() (json.RawMessage, error) { return c.fn(talk) })
}

func resultOf(o conversation.Outcome) Result {
	switch {
	case o.Over:
		return Result{Over: true, Error: conversation.ErrOver.Error()}
	case len(o.Waits) > 0:
		return Result{Waits: o.Waits}
	case o.Held != "":
		return Result{Held: o.Held}
	case o.Fatal != nil:
		return Result{Error: o.Fatal.Error(), Fatal: true}
	case o.Restarts:
		return Result{Output: o.Output, Restarts: true}
	case o.Err != nil:
		return Result{Error: textOf(o.Err), Details: detailsOf(o.Err), Fatal: true}
	}
	return Result{Output: o.Output}
}

// textOf returns the text of an error. An empty text is replaced, because it would mean success.
func textOf(err error) string {
	if text := err.Error(); text != "" {
		return text
	}
	return "failed"
}

// detailsOf returns the details of an error, or of the failed step in its chain.
func detailsOf(err error) json.RawMessage {
	var failed *conversation.Error
	if details := job.DetailsOf(err); details != nil || !errors.As(err, &failed) {
		return details
	}
	return failed.Details
}
