// Package flowfuncs calls the functions of a program that are flows, for members and workers.
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

// Func is a function that is a flow. It asks for its steps in the conversation.
type Func = func(c *conversation.Conversation) (json.RawMessage, error)

// Functions are the functions of a program that are flows, by name.
type Functions struct {
	funcs   sync.Map // of Func, by name
	running sync.Map // of chan struct{}, closed when the function has stopped; by job
	warm    *warmFlows
}

// New returns Functions without a function. A function that waits stays in memory for keepWarm.
func New(keepWarm time.Duration) *Functions {
	return &Functions{warm: &warmFlows{keep: keepWarm, functions: map[string]*warmFlow{}}}
}

// DropWaiting ends the functions that wait in memory.
func (f *Functions) DropWaiting() { f.warm.dropAll() }

// Register adds a function. A later one of the same name replaces it.
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

// Begin begins a call for a delivery of a job. It waits until an earlier call of the job has
// stopped. Without a call it returns the reason why the function is held: this program does not
// have it, and another version of the program may, or an earlier call does not stop.
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

// stopGrace is how long a function may take to stop before the next call of it is held.
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

// Delivery is what a carrier has got of the job of a function.
type Delivery struct {
	Job    job.Job
	Steps  []conversation.Step // recorded steps
	Undoes bool                // the function is called to undo its work
	Host   conversation.Host
}

// Result is the result of a call.
type Result struct {
	Output   json.RawMessage // of the function, or its next input
	Restarts bool            // it begins anew
	Error    string          // why the function has failed; "" if it has not
	Details  json.RawMessage // details of the error
	Fatal    bool            // the error is permanent
	Over     bool            // nothing may be reported
	Held     string          // why the function stopped although its task goes on; "" if it did not
	Waits    []*conversation.Wait
}

// Run calls the function from its beginning, or goes on with the one that waits in memory. ctx
// contains the job and ends when that is withdrawn.
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

// textOf returns the text of an error. An empty one would mean success.
func textOf(err error) string {
	if text := err.Error(); text != "" {
		return text
	}
	return "failed"
}

// detailsOf returns the details of an error, or of the failed step that it is about.
func detailsOf(err error) json.RawMessage {
	var failed *conversation.Error
	if details := job.DetailsOf(err); details != nil || !errors.As(err, &failed) {
		return details
	}
	return failed.Details
}
