package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/internal/flowfuncs"
	"github.com/troupe-engine/troupe/job"
)

// functionJob is the part of a job that only functions that are flows have.
type functionJob struct {
	// The following fields are guarded by the lock of attachedWorker.
	record   *attach.FunctionRecord      // record without an answer of the engine; nil for none
	answered chan *attach.FunctionAnswer // receives the answer to record
	turn     uint64                      // number of the last record
	returns  bool                        // the function stopped because the worker is leaving

	mu      sync.Mutex // guards the rest; held while receive is called
	history []conversation.Step
	missing uint64        // number of steps of the history that have not arrived
	whole   chan struct{} // closed when the whole history has arrived
	seen    uint64        // number of steps that arrived after the job
	ended   []conversation.Step
	receive func(conversation.Step) // nil until the function registers a callback
}

func newFunctionJob(f *attach.Function) *functionJob {
	j := &functionJob{answered: make(chan *attach.FunctionAnswer, 1), missing: f.GetMoreSteps(), whole: make(chan struct{})}
	for _, s := range f.GetSteps() {
		j.history = append(j.history, fromWireStep(s))
	}
	if j.missing == 0 {
		close(j.whole)
	}
	return j
}

// carryFunction calls the function of a job.
func (a *attachedWorker) carryFunction(j *attachedJob, result *attach.Result) {
	name, told := j.GetFunction().GetName(), j.handlerJob()
	told.Service = name
	select {
	case <-j.function.whole:
	case <-j.ctx.Done():
		return
	}
	call, held := a.worker.flows.Begin(j.ctx, name, told.ID)
	if call == nil {
		result.Outcome, result.GivenUp = attach.Outcome_OUTCOME_GIVEN_UP, &attach.FunctionGivenUp{Reason: held}
		return
	}
	defer call.End()
	streams := a.worker.openStreams(j.ctx, told.ID, "")
	defer streams.Close(told.Log)
	told = job.WithStreams(streams, told)
	ctx := job.With(j.ctx, told, func(_ context.Context, _ Job, text string) { a.setProgress(j, text) })
	r := call.Run(ctx, flowfuncs.Delivery{Job: told, Steps: j.function.history, Undoes: j.GetFunction().GetUndoes(),
		Host: &functionHost{a, j, streams}})
	result.Metrics = job.Told(ctx)
	switch {
	case r.Over || j.ctx.Err() != nil:
	case r.Held != "" && a.returnsFunction(j):
		result.Outcome = attach.Outcome_OUTCOME_RETURNED
	case r.Held == conversation.ErrPaused.Error():
		giveUp(result, &attach.FunctionGivenUp{Paused: true})
	case r.Held != "":
		giveUp(result, &attach.FunctionGivenUp{Reason: r.Held})
	case len(r.Waits) > 0:
		giveUp(result, &attach.FunctionGivenUp{Waits: toWireWaits(r.Waits)})
	case r.Restarts:
		result.Output = r.Output
		giveUp(result, &attach.FunctionGivenUp{Restarts: true})
	case r.Error != "":
		result.Outcome, result.Error, result.Details, result.Fatal = attach.Outcome_OUTCOME_FAILED, r.Error, r.Details, r.Fatal
	default:
		result.Outcome, result.Output = attach.Outcome_OUTCOME_COMPLETED, r.Output
	}
	a.limitResult(result)
}

// returnsFunction reports whether a function has stopped because the worker is leaving.
func (a *attachedWorker) returnsFunction(j *attachedJob) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return j.function.returns
}

func giveUp(result *attach.Result, how *attach.FunctionGivenUp) {
	result.Outcome, result.GivenUp = attach.Outcome_OUTCOME_GIVEN_UP, how
}

// functionHost connects a function with the engine over the stream.
type functionHost struct {
	a       *attachedWorker
	j       *attachedJob
	streams job.StreamSink
}

func (h *functionHost) Now() time.Time { return time.Now() }

// Listen registers a callback for the ends of waits. The callback is also called for ends that
// arrived before.
func (h *functionHost) Listen(end func(conversation.Step)) {
	f := h.j.function
	f.mu.Lock()
	defer f.mu.Unlock()
	f.receive = end
	for _, s := range f.ended {
		end(s)
	}
	f.ended = nil
}

// Record sends results and waits, and returns when the engine has answered. A record that is too
// large for one message is split. Values that the function wrote to streams are stored first,
// because a replay does not write them again.
func (h *functionHost) Record(_ context.Context, steps []*conversation.Step, waits []*conversation.Wait) error {
	_ = h.streams.Flush(h.j.ctx, "") // the log of the job contains the reasons
	most := h.a.maxRecord()
	list, bytes, n := make([]*attach.FunctionStep, len(steps)), 0, 0
	for i, s := range steps {
		list[i] = toWireStep(s)
		size := stepBytes(list[i])
		switch {
		case size > most:
			return fmt.Errorf("the result was rejected: it has %d bytes, more than the engine takes", size)
		case bytes+size > most:
			if err := h.sendRecord(&attach.FunctionRecord{Steps: list[n:i]}); err != nil {
				return err
			}
			bytes, n = 0, i
		}
		bytes += size
	}
	return h.sendRecord(&attach.FunctionRecord{Steps: list[n:], Waits: toWireWaits(waits)})
}

// maxRecord returns the maximum size of a record in bytes.
func (a *attachedWorker) maxRecord() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.maxMessage - messageOverhead
}

// sendRecord sends a record and waits for the engine's answer.
func (h *functionHost) sendRecord(r *attach.FunctionRecord) error {
	f := h.j.function
	f.mu.Lock()
	r.Seen = f.seen
	f.mu.Unlock()
	h.a.mu.Lock()
	f.turn++
	r.Number, r.Turn = h.j.GetNumber(), f.turn
	f.record = r
	h.a.records = append(h.a.records, r)
	h.a.mu.Unlock()
	h.a.wakeWriter()
	select {
	case answer := <-f.answered:
		if err := errorOf(answer); err != nil {
			return err
		}
		return h.stopIfLeaving()
	case <-h.j.ctx.Done():
		return conversation.ErrOver
	}
}

// stopIfLeaving stops the function after its recorded steps if the worker is leaving. Another
// worker then continues without repeating a step. A function that undoes its work is not stopped.
func (h *functionHost) stopIfLeaving() error {
	h.a.mu.Lock()
	defer h.a.mu.Unlock()
	if !h.a.leaving || h.j.GetFunction().GetUndoes() {
		return nil
	}
	h.j.function.returns = true
	return conversation.ErrPaused
}

// errorOf returns the error that an answer stands for, or nil if the record was stored.
func errorOf(a *attach.FunctionAnswer) error {
	switch a.GetOutcome() {
	case attach.RecordOutcome_RECORD_OUTCOME_STORED:
		return nil
	case attach.RecordOutcome_RECORD_OUTCOME_STOPS:
		return conversation.ErrPaused
	case attach.RecordOutcome_RECORD_OUTCOME_OVER:
		return conversation.ErrOver
	}
	if a.GetError() == "" {
		return errors.New("the engine refused the results")
	}
	return errors.New(a.GetError())
}

// takeAnswers passes answers to the waiting functions. An answer may arrive twice.
func (a *attachedWorker) takeAnswers(answers []*attach.FunctionAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, answer := range answers {
		j := a.held[answer.GetNumber()]
		if j == nil || j.function == nil || j.function.record.GetTurn() != answer.GetTurn() {
			continue
		}
		j.function.record = nil
		j.function.answered <- answer
	}
}

// takeSteps adds recorded steps to the histories of functions, and reports the ends of their waits.
func (a *attachedWorker) takeSteps(list []*attach.FunctionSteps) {
	for _, told := range list {
		a.mu.Lock()
		j := a.held[told.GetNumber()]
		a.mu.Unlock()
		if j != nil && j.function != nil {
			j.function.addSteps(told)
		}
	}
}

// addSteps adds steps to the function's history. Steps that arrived before are ignored.
func (f *functionJob) addSteps(told *attach.FunctionSteps) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, wire := range told.GetSteps() {
		if told.GetFirst()+uint64(i) != f.seen {
			continue
		}
		f.seen++
		switch s := fromWireStep(wire); {
		case f.missing > 0:
			f.history = append(f.history, s)
			if f.missing--; f.missing == 0 {
				close(f.whole)
			}
		case f.receive == nil:
			f.ended = append(f.ended, s)
		default:
			f.receive(s)
		}
	}
}

// recordBytes returns the approximate size of a record in a message, in bytes.
func recordBytes(r *attach.FunctionRecord) (size int) {
	for _, s := range r.GetSteps() {
		size += stepBytes(s)
	}
	return size + waitsBytes(r.GetWaits())
}

func stepBytes(s *attach.FunctionStep) int {
	return len(s.GetName()) + len(s.GetHash()) + len(s.GetOutput()) + len(s.GetError()) + len(s.GetDetails()) + 64
}

func waitsBytes(waits []*attach.FunctionWait) (size int) {
	for _, w := range waits {
		size += len(w.GetName()) + len(w.GetKey()) + len(w.GetQuestion()) + len(w.GetJob().GetInput()) + len(w.GetError()) + 64
	}
	return size
}

func toWireStep(s *conversation.Step) *attach.FunctionStep {
	return &attach.FunctionStep{Name: s.Name, Use: uint32(s.Use), Kind: string(s.Kind), Hash: s.Hash,
		Output: s.Output, Error: s.Error, Details: s.Details, Tries: uint32(s.Tries), StartedAtMs: s.StartedAt}
}

func fromWireStep(s *attach.FunctionStep) conversation.Step {
	return conversation.Step{Name: s.GetName(), Use: int(s.GetUse()), Kind: conversation.Kind(s.GetKind()), Hash: s.GetHash(),
		Output: s.GetOutput(), Error: s.GetError(), Details: s.GetDetails(), Tries: int(s.GetTries()),
		StartedAt: s.GetStartedAtMs(), EndedAt: s.GetEndedAtMs()}
}

func toWireWaits(waits []*conversation.Wait) []*attach.FunctionWait {
	list := make([]*attach.FunctionWait, len(waits))
	for i, w := range waits {
		list[i] = &attach.FunctionWait{Name: w.Name, Use: uint32(w.Use), Kind: string(w.Kind), Key: w.Key,
			DurationMs: conversation.ToMillis(w.For), Question: w.Question.EncodeParams(), Tries: uint32(w.Tries), Error: w.Error,
			Job: toWireCall(w)}
	}
	return list
}

func toWireCall(w *conversation.Wait) *attach.CalledJob {
	if w.Job == nil {
		return nil
	}
	return &attach.CalledJob{Service: w.Job.Service, Flow: w.Job.Flow, Over: w.Job.Over, Input: w.Job.Input, Hash: w.Hash,
		Retries: uint32(w.Job.Retries), PauseMs: conversation.ToMillis(w.Job.Pause), TimeoutMs: conversation.ToMillis(w.Job.Timeout)}
}
