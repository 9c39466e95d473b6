package attached

import (
	"errors"
	"slices"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/flow"
)

// A function flow communicates with its task while a worker carries it out: the member stores its
// records, and sends it the ends of its waits. It does not move with its worker to another member.
// Instead, it is called again there and continues after its recorded steps.

// offeredServices returns all services of a worker, including those of its function flows.
func offeredServices(hello *attach.Hello) []string {
	services := slices.Clone(hello.GetServices())
	for _, name := range hello.GetFlows() {
		services = append(services, flow.FunctionService(name))
	}
	return sortedUnique(services)
}

// functionGrant is the part of a grant that only function flows have. The lock of Sessions guards
// it.
type functionGrant struct {
	host   carriers.FunctionHost
	prefix string // prefix of the recorded names of steps
	// unconfirmed steps that follow those in the job message: recorded steps that did not fit in
	// it, and results of waits
	steps     []*attach.FunctionStep
	confirmed int                    // number of steps that the worker has confirmed (dropped)
	sent      int                    // number of remaining steps sent on the current stream
	queued    bool                   // the grant is in the outbox
	record    *attach.FunctionRecord // newest record to be stored
	storing   bool                   // a record is being stored
}

// pageBytes is the maximum size of the history in the job message itself.
const pageBytes = batchBytes / 2

// beginFunction adds the data of a function flow to a job message.
func (g *jobGrant) beginFunction(p carriers.Passage, j *flow.Job) {
	steps := make([]*attach.FunctionStep, len(j.Function.Steps))
	for i := range steps {
		steps[i] = toWireStep(&j.Function.Steps[i])
	}
	n := countPage(steps, pageBytes)
	g.job.Function = &attach.Function{Name: j.Exec.Func, Steps: steps[:n], MoreSteps: uint64(len(steps) - n), Undoes: j.Function.Undoes}
	g.function = &functionGrant{host: p.FunctionHost(), prefix: j.RestartPrefix(), steps: steps[n:]}
	g.queueSteps()
	g.function.host.Listen(g.addStep)
}

// countPage returns how many steps fit into a number of bytes, at least one.
func countPage(steps []*attach.FunctionStep, most int) (n int) {
	for bytes := 0; n < len(steps) && bytes < most; n++ {
		bytes += stepBytes(steps[n])
	}
	return n
}

// stepBytes returns the approximate size of a step in a message.
func stepBytes(s *attach.FunctionStep) int {
	return len(s.GetName()) + len(s.GetOutput()) + len(s.GetError()) + len(s.GetDetails()) + 64
}

// addStep sends the end of a wait to the worker.
func (g *jobGrant) addStep(step flow.CodeStep) {
	s := g.session.sessions
	s.mu.Lock()
	if g.passage != nil {
		g.function.steps = append(g.function.steps, toWireStep(&step))
		g.queueSteps()
	}
	s.mu.Unlock()
	g.session.wakeWriter()
}

// queueSteps makes the writer send the steps that were not sent yet.
func (g *jobGrant) queueSteps() {
	f := g.function
	if !f.queued && f.sent < len(f.steps) {
		f.queued = true
		g.session.outbox.functions = append(g.session.outbox.functions, g)
	}
}

// resendSteps sends the unconfirmed steps again on a new stream.
func (g *jobGrant) resendSteps() {
	if f := g.function; f != nil {
		f.sent, f.queued = 0, false
		g.queueSteps()
	}
}

// confirmSteps drops the steps that the worker has confirmed.
func (f *functionGrant) confirmSteps(seen uint64) {
	n := max(0, int(min(seen, uint64(f.confirmed+f.sent)))-f.confirmed)
	f.steps, f.confirmed, f.sent = f.steps[n:], f.confirmed+n, f.sent-n
}

// addFunctions adds answers and steps of functions to a message until the message is large enough.
func (o *outbox) addFunctions(m *attach.ToWorker, bytes int) {
	m.Answers, o.answers = o.answers, nil
	for len(o.functions) > 0 && bytes < batchBytes {
		g := o.functions[0]
		f := g.function
		if g.passage == nil {
			f.sent = len(f.steps) // the function is no longer needed
		}
		if n := countPage(f.steps[f.sent:], batchBytes-bytes); n > 0 {
			page := f.steps[f.sent : f.sent+n]
			first := uint64(f.confirmed + f.sent)
			m.Steps = append(m.Steps, &attach.FunctionSteps{Number: g.number, First: first, Steps: slices.Clone(page)})
			f.sent += n
			for _, s := range page {
				bytes += stepBytes(s)
			}
		}
		if f.sent < len(f.steps) {
			return
		}
		f.queued = false
		o.functions = o.functions[1:]
	}
}

// takeRecord accepts a record of a function and has it stored, one record after another.
func (ses *workerSession) takeRecord(r *attach.FunctionRecord) {
	g := ses.grants[r.GetNumber()]
	if g == nil || g.passage == nil || g.function == nil {
		ses.outbox.answers = append(ses.outbox.answers, answerTo(r, flow.ErrOver))
		return
	}
	f := g.function
	f.confirmSteps(r.GetSeen())
	if f.record = r; !f.storing {
		f.storing = true
		ses.sessions.done.Run(func() { ses.sessions.storeRecords(g) })
	}
}

// storeRecords stores and answers the records of a function until none is left.
func (s *Sessions) storeRecords(g *jobGrant) {
	f := g.function
	for {
		s.mu.Lock()
		r := f.record
		f.record, f.storing = nil, r != nil
		s.mu.Unlock()
		if r == nil {
			return
		}
		steps, waits := fromWireRecord(r, f.prefix)
		err := f.host.Record(steps, waits)
		s.mu.Lock()
		g.session.outbox.answers = append(g.session.outbox.answers, answerTo(r, err))
		s.mu.Unlock()
		g.session.wakeWriter()
	}
}

// answerTo returns the answer to a record.
func answerTo(r *attach.FunctionRecord, err error) *attach.FunctionAnswer {
	a := &attach.FunctionAnswer{Number: r.GetNumber(), Turn: r.GetTurn()}
	switch {
	case err == nil:
		a.Outcome = attach.RecordOutcome_RECORD_OUTCOME_STORED
	case errors.Is(err, flow.ErrOver):
		a.Outcome = attach.RecordOutcome_RECORD_OUTCOME_OVER
	case errors.Is(err, flow.ErrCodeStops):
		a.Outcome = attach.RecordOutcome_RECORD_OUTCOME_STOPS
	default:
		a.Outcome, a.Error = attach.RecordOutcome_RECORD_OUTCOME_REFUSED, err.Error()
	}
	return a
}

// givenUpBy returns why a worker gave up a function; nil for other jobs and results.
func (g *jobGrant) givenUpBy(r *attach.Result) *flow.GivenUp {
	if g.function == nil || r.GetOutcome() != attach.Outcome_OUTCOME_GIVEN_UP {
		return nil
	}
	told := r.GetGivenUp()
	switch {
	case told.GetRestarts():
		return &flow.GivenUp{Restarts: true}
	case told.GetPaused():
		return &flow.GivenUp{Reason: flow.HeldPaused}
	case len(told.GetWaits()) > 0:
		return &flow.GivenUp{Reason: flow.HeldWaiting, Waits: fromWireWaits(told.GetWaits(), g.function.prefix)}
	case told.GetReason() == "":
		return &flow.GivenUp{Reason: "its worker has given it up without a reason"}
	}
	return &flow.GivenUp{Reason: told.GetReason()}
}

func toWireStep(s *flow.CodeStep) *attach.FunctionStep {
	return &attach.FunctionStep{Name: flow.TrimRestartPrefix(s.Name), Use: uint32(s.Use), Kind: string(s.Kind), Hash: s.Hash,
		Output: s.Output, Error: s.Error, Details: s.Details, Tries: uint32(s.Tries), StartedAtMs: s.StartedAt, EndedAtMs: s.EndedAt}
}

// fromWireRecord converts the steps and waits of a record. It puts prefix before their names.
func fromWireRecord(r *attach.FunctionRecord, prefix string) ([]flow.CodeStep, []flow.CodeWait) {
	steps := make([]flow.CodeStep, len(r.GetSteps()))
	for i, s := range r.GetSteps() {
		steps[i] = flow.CodeStep{Name: prefix + s.GetName(), Use: int(s.GetUse()), Kind: flow.CodeKind(s.GetKind()), Hash: s.GetHash(),
			Output: s.GetOutput(), Error: s.GetError(), Details: s.GetDetails(), Tries: int(s.GetTries()), StartedAt: s.GetStartedAtMs()}
	}
	return steps, fromWireWaits(r.GetWaits(), prefix)
}

func fromWireWaits(list []*attach.FunctionWait, prefix string) []flow.CodeWait {
	waits := make([]flow.CodeWait, len(list))
	for i, w := range list {
		waits[i] = flow.CodeWait{Name: prefix + w.GetName(), Use: int(w.GetUse()), Kind: flow.CodeKind(w.GetKind()), Key: w.GetKey(),
			MS: w.GetDurationMs(), Question: w.GetQuestion(), Tries: int(w.GetTries()), Error: w.GetError(), Job: fromWireCall(w.GetJob())}
	}
	return waits
}

func fromWireCall(c *attach.CalledJob) *flow.CodeJob {
	if c == nil {
		return nil
	}
	return &flow.CodeJob{Exec: flow.ExecType(c.GetOver()), Service: c.GetService(), Func: c.GetFlow(), Input: c.GetInput(),
		Hash: c.GetHash(), Retries: int(c.GetRetries()), PauseMS: c.GetPauseMs(), TimeoutMS: c.GetTimeoutMs()}
}
