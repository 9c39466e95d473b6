package actors

import (
	"context"
	"sync"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// withFunctionHost returns a context that lets a function flow send the results of its steps to its
// task, on any member.
func (m jobCarrying) withFunctionHost(ctx context.Context, f *activeJob, job *flow.Job) context.Context {
	if f.waitEnds == nil {
		return ctx
	}
	return carriers.WithFunctionHost(ctx, m.functionHost(ctx, f, job))
}

func (m jobCarrying) functionHost(ctx context.Context, f *activeJob, job *flow.Job) carriers.FunctionHost {
	task, at, given := job.Task, job.Address, job.Given
	return carriers.FunctionHost{
		Record: func(steps []flow.CodeStep, waits []flow.CodeWait) error {
			return m.recordSteps(ctx, task, flow.RecordSteps{Address: at, Given: given, Steps: steps, Waits: waits})
		}, Listen: f.waitEnds.setReceiver}
}

// recordSteps stores results of a function's steps and starts its waits. It retries while the store
// or the owner of the task is unavailable.
func (m jobCarrying) recordSteps(ctx context.Context, task string, results flow.RecordSteps) error {
	for try := 1; ; try++ {
		answered, err := true, error(nil)
		report, offloadErr := m.values.OffloadCommand(ctx, task, results)
		if err = offloadErr; err == nil {
			answered, err = m.reportProgressOnce(ctx, task, report)
		}
		switch {
		case !answered:
			return flow.ErrOver
		case err == nil:
			return nil
		case err.Error() == flow.ErrCodeStops.Error(): // errors of other members have only a text
			return flow.ErrCodeStops
		}
		switch flow.ErrorKindOf(err) {
		case flow.Busy, flow.Moved:
			if ctx.Err() != nil || !m.work.Sleep(background.StorePause(try)) {
				return flow.ErrOver
			}
		case flow.Conflict, flow.NotFound:
			return flow.ErrOver
		default:
			return err
		}
	}
}

// sendWaitEnd brings the end of a wait to the carrier of its function.
func (s *sessions) sendWaitEnd(m jobErrand, e *flow.WaitEnded) {
	ended := []flow.CodeStep{e.Step}
	if s.isForeignCarrier(e.Carrier) {
		s.m.jobForwarder.Enqueue(e.Carrier,
			engine.Errand{Job: engine.Job{Task: m.task, Address: e.Address}, Given: e.Given, Ended: ended}, m.inbox)
		return
	}
	s.endWaits(engine.JobKey{Task: m.task, At: e.Address}, e.Given, ended)
}

// endWaits gives ends of waits to a job. It returns false if the job is unknown here.
func (s *sessions) endWaits(key engine.JobKey, given int, ended []flow.CodeStep) bool {
	f := s.findJob(key, given)
	if f == nil {
		return false
	}
	f.waitEnds.addSteps(ended)
	return true
}

// waitEnds passes the recorded ends of waits to the function of a job, one at a time and in order.
// It buffers them until the function registers its receiver.
type waitEnds struct {
	m *Member
	f *activeJob

	mu      sync.Mutex
	receive func(flow.CodeStep) // nil until the function registers it
	unsent  []flow.CodeStep
	sending bool  // a goroutine calls the receiver
	closed  bool  // the carrier has returned, or a value was lost
	lost    error // why the value of a wait's end is unavailable
}

// setReceiver registers the receiver of the ends of waits. A later one replaces it.
func (w *waitEnds) setReceiver(receive func(flow.CodeStep)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receive = receive
	w.startSending()
}

// addSteps adds ends of waits. It does nothing if w is nil, which means that the job is no function
// flow.
func (w *waitEnds) addSteps(ended []flow.CodeStep) {
	if w == nil || len(ended) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.unsent = append(w.unsent, ended...)
		w.startSending()
	}
}

func (w *waitEnds) startSending() {
	if w.receive != nil && len(w.unsent) > 0 && !w.sending && !w.closed {
		w.sending = true
		w.m.work.Run(w.sendUnsent)
	}
}

// sendUnsent calls the receiver until no end of a wait is left. If a value is unavailable, the
// function ends with that error.
func (w *waitEnds) sendUnsent() {
	for {
		step, receive := w.takeStep()
		if receive == nil {
			return
		}
		step, err := w.m.values.ResolveStep(&w.f.jobCtx, step)
		if err != nil {
			w.stopFunction(err)
			return
		}
		receive(step)
	}
}

func (w *waitEnds) takeStep() (step flow.CodeStep, receive func(flow.CodeStep)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.unsent) == 0 || w.closed {
		w.sending = false
		return step, nil
	}
	step, w.unsent = w.unsent[0], w.unsent[1:]
	return step, w.receive
}

// stopFunction ends the job's context and records the error, unless the function was stopped
// before.
func (w *waitEnds) stopFunction(err error) {
	w.mu.Lock()
	if !w.closed && w.f.jobCtx.Err() == nil {
		w.lost = err
	}
	w.closed = true
	w.mu.Unlock()
	w.f.jobCtx.endJob()
	if q, relayed := w.f.route.(*relayQueue); relayed {
		q.relay.CallOff(w.f)
	}
}

// close drops further ends of waits, because the carrier has returned. It returns why the function
// was stopped, nil if it was not stopped.
func (w *waitEnds) close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.unsent = true, nil
	return w.lost
}
