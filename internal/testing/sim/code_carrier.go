package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/carriers/functions"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/conversation"
	troupejob "github.com/troupe-engine/troupe/job"
)

// codeCarrier carries out functions on a member, by the production carrier.
//
// A function has goroutines of its own, which are no part of the world. Each of their requests is a
// call of the world, which starts it when all of them wait. So a run with functions needs a bubble
// of testing/synctest. Its time passes as that of the world.
type codeCarrier struct {
	*simRun
	h     *host
	flows *functions.Flows

	deliveries map[string]flow.Job // newest delivery of each job that it has got
	cancels    map[string]func()   // ends the job
	killed     chan struct{}       // closed when the member is gone

	mu    sync.Mutex
	calls []*worldCall
}

// worldCall is a call of the world by a goroutine of a function.
type worldCall struct {
	name string
	run  func()
	done chan struct{}
}

func (st *simRun) newCodeCarrier(h *host) *codeCarrier {
	keep := pickOne(st.w.rng, 0, 50*time.Millisecond, 5*time.Second)
	c := &codeCarrier{simRun: st, h: h, flows: functions.NewFlows(functions.New(functions.Options{}), keep),
		deliveries: map[string]flow.Job{}, cancels: map[string]func(){}, killed: make(chan struct{})}
	for _, u := range st.users {
		if p := u.play.code; p != nil {
			c.flows.Register(p.name, func(talk *conversation.Conversation) (json.RawMessage, error) {
				return c.newCall(talk.Job().ID).callProgram(talk, p)
			})
		}
	}
	st.w.codeCarriers = append(st.w.codeCarriers, c)
	return c
}

// callWorld runs a function in the world, and returns when it has returned. It returns false if the
// caller is done before, or the member is gone.
func (c *codeCarrier) callWorld(done <-chan struct{}, name string, run func()) bool {
	call := &worldCall{name, run, make(chan struct{})}
	c.mu.Lock()
	c.calls = append(c.calls, call)
	c.mu.Unlock()
	select {
	case <-call.done:
		return true
	case <-done:
	case <-c.killed:
	}
	return false
}

// startCalls starts the calls of functions. Their order does not depend on the order of goroutines.
func (c *codeCarrier) startCalls() {
	c.mu.Lock()
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	slices.SortFunc(calls, func(a, b *worldCall) int { return cmp.Compare(a.name, b.name) })
	for _, call := range calls {
		c.w.startCoroutine(c.h, call.name, func() {
			if !c.h.dead {
				call.run()
				close(call.done)
			}
		})
	}
}

// killFunctions ends the functions of a removed member, as the end of its process would.
func (c *codeCarrier) killFunctions() {
	close(c.killed)
	for _, cancel := range c.cancels {
		cancel()
	}
	c.flows.DropWaiting()
}

// settleFunctions returns when all goroutines of functions wait, and starts their calls.
// Functions of members that are gone end.
func (w *simWorld) settleFunctions() {
	if !w.functions {
		return
	}
	w.codeCarriers = slices.DeleteFunc(w.codeCarriers, func(c *codeCarrier) bool {
		if c.h.dead {
			c.killFunctions()
		}
		return c.h.dead
	})
	synctest.Wait()
	for _, c := range w.codeCarriers {
		c.startCalls()
	}
}

// passBubble lets the time of the functions pass.
func (w *simWorld) passBubble(d time.Duration) {
	if w.functions {
		time.Sleep(d)
		w.settleFunctions()
	}
}

// Carry carries out the job of a function.
func (c *codeCarrier) Carry(ctx context.Context, job flow.Job) flow.Report {
	if c.h.dead {
		return flow.Report{Error: errDown.Error()}
	}
	c.check.checkCarried(c.h.name, job.Task, job.Address)
	c.h.carrying[job.ID()]++
	defer c.h.finishJob(job.ID())
	c.counts.Code.Calls++
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	c.deliveries[job.ID()], c.cancels[job.ID()] = job, cancel
	job.Function = c.damageHistory(job.Function)
	c.w.addTrace("%s calls the function of %s, delivery %d, %d steps, undo %v", c.h.name, job.ID(), job.Given,
		len(job.Function.Steps), job.Function.Undoes)
	own = carriers.WithFunctionHost(own, c.newFunctionHost(carriers.FunctionHostOf(ctx), &job))
	reports := make(chan flow.Report, 1)
	go func() { reports <- c.flows.Carry(own, job) }() // ends with its context
	c.w.parkUntil(func() bool { return len(reports) > 0 })
	report := <-reports
	c.w.addTrace("%s has called the function of %s: %s %s %+v", c.h.name, job.ID(), report.Output, report.Error, report.GivenUp)
	return report
}

// newFunctionHost returns the engine's side of a function, which is called in the world.
func (c *codeCarrier) newFunctionHost(engine carriers.FunctionHost, job *flow.Job) carriers.FunctionHost {
	return carriers.FunctionHost{
		Record: func(steps []flow.CodeStep, waits []flow.CodeWait) error {
			answer := make(chan error, 1)
			if !c.callWorld(nil, job.ID()+" record", func() { answer <- c.recordSteps(engine, job, steps, waits) }) {
				return flow.ErrOver
			}
			return <-answer
		},
		Listen: func(receive func(flow.CodeStep)) {
			c.callWorld(nil, job.ID()+" listen", func() { engine.Listen(receive) })
		},
	}
}

// recordSteps gives results to the engine, and checks its answer.
func (c *codeCarrier) recordSteps(engine carriers.FunctionHost, job *flow.Job, steps []flow.CodeStep, waits []flow.CodeWait) error {
	c.ledger.noteResults(job, steps)
	err := c.damagedHost(engine, job).Record(steps, waits)
	c.w.addTrace("%s records %d steps and %d waits of %s, delivery %d: %v", c.h.name, len(steps), len(waits), job.ID(), job.Given, err)
	switch {
	case err == nil:
		c.ledger.checkStored(c, job, steps)
	case len(steps) > 0 && !c.ledger.isCurrent(job):
		c.counts.Code.Stale++
	}
	return err
}

// newCall returns a call of a program for a job. A later delivery of the job may continue the call.
func (c *codeCarrier) newCall(id string) *codeCall {
	return &codeCall{
		takeTurn: func(done <-chan struct{}, path, last string) {
			c.callWorld(done, id+" "+path+" turn", func() {
				c.w.yieldOnce()
				if last != "" {
					c.ledger.checkVisible(c, id, last)
				}
			})
		},
		carryOut: func(done <-chan struct{}, work *codeWork) error {
			answer := make(chan error, 1)
			if !c.callWorld(done, id+" "+work.place, func() { answer <- c.performWork(id, work) }) {
				return context.Canceled
			}
			return <-answer
		},
	}
}

// codeWork is the work of a single try of a step.
type codeWork struct {
	place, key string
	op         *codeOp
	undoes     string // place of the step that it undoes; "" for none
}

// performWork does the work of a step, which takes some time. Its error is scripted.
func (c *codeCarrier) performWork(id string, work *codeWork) error {
	job := c.deliveries[id]
	fails := c.ledger.beginWork(c, &job, work)
	c.w.yieldOnce()
	if c.w.drawChance(300) {
		c.w.sleepFor(c.w.upTo(50 * time.Millisecond))
	}
	if c.w.drawFault(c.w.faults.stalls) {
		c.w.sleepFor(c.w.upTo(6 * time.Second))
	}
	switch {
	case fails && work.op.fatal:
		return troupejob.Fatal(errScripted)
	case fails:
		return errScripted
	}
	return nil
}
