package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/troupe-engine/troupe/flow"
)

// asked is a request of a client about a task.
type asked struct {
	task    string
	what    string // signal, cancel, claim, complete or read
	key     string // of a signal
	value   string // JSON value of a signal or a completion
	request string // request id of a signal
	worker  string // worker of a claim
	job     string // completed job …
	token   string // … and the token of its claim
}

// answered is the answer.
type answered struct {
	status     int
	job, token string // claimed job and token
	state      string // state of a read, with the shared values
	shared     map[string]string
}

// core is the sequential specification of one task: package flow alone. A state is a snapshot.
type core struct {
	plan *flow.Plan
}

// now is the time of every command; no compared value depends on it.
const now = 1_700_000_000_000

// of returns the model of one task.
func (m core) of(task string) porcupine.Model {
	s := flow.NewState(task, m.plan)
	if status := m.decide(s, flow.Start{Params: json.RawMessage("{}")}); status != 200 {
		panic(fmt.Sprintf("e2e: the core does not begin the task: %d", status))
	}
	begin := string(flow.EncodeSnapshot(s).Bytes())
	model := porcupine.NondeterministicModel{Init: func() []any { return []any{begin} }, Step: m.step}
	return model.ToModel()
}

func (m core) read(state any) *flow.State {
	s, ok := flow.DecodeSnapshot([]byte(state.(string)), m.plan)
	if !ok {
		panic("e2e: the core cannot read what it wrote")
	}
	return s
}

// step returns the possible states after a request with this answer.
func (m core) step(state, input, output any) []any {
	in, out := input.(asked), output.(answered)
	s := m.read(state)
	switch in.what {
	case "read":
		if string(s.Status) == out.state && maps.Equal(sharedOf(s), out.shared) {
			return []any{state}
		}
		return nil
	case "claim":
		if !m.claims(s, out.job, in.worker, out.token) {
			return nil
		}
	default:
		if m.decide(s, in.command()) != out.status {
			return nil
		}
	}
	forgetOrder(s)
	return []any{string(flow.EncodeSnapshot(s).Bytes())}
}

// forgetOrder makes states equal that differ only in the order of their stored signals. No answer
// depends on that, and otherwise a checker would have too many orders to try.
func forgetOrder(s *flow.State) {
	for i := range s.Signals {
		s.Signals[i].Key, s.Signals[i].Value = "go", json.RawMessage("true")
	}
}

// claims claims the job named by an answer, and reports whether that was possible.
func (m core) claims(s *flow.State, job, worker, token string) bool {
	task, at, err := flow.ParseJobID(job)
	return err == nil && task == s.Task &&
		m.decide(s, flow.Claim{Address: at, Worker: worker, Token: token, Until: now + 3_600_000}) == 200
}

func (in asked) command() flow.Command {
	switch in.what {
	case "signal":
		return flow.Signal{Key: in.key, Value: json.RawMessage(in.value), Alive: true}
	case "cancel":
		return flow.Cancel{}
	case "complete":
		_, at, err := flow.ParseJobID(in.job)
		if err != nil {
			panic(err)
		}
		return flow.Report{Address: at, Output: json.RawMessage(in.value), Token: in.token, Poller: true}
	}
	panic("e2e: no command: " + in.what)
}

// decide applies a command to the state and returns the HTTP status of the answer. Each command of
// a history has its effect once, so the core need not remember requests.
func (m core) decide(s *flow.State, cmd flow.Command) int {
	for cmd != nil {
		d, err := flow.Decide(s, cmd, flow.Env{Now: now, Member: "m", Limits: flow.DefaultLimits})
		if err != nil {
			return map[flow.ErrorKind]int{flow.Conflict: 409, flow.NotFound: 404, flow.Invalid: 400}[flow.ErrorKindOf(err)]
		}
		cmd = d.More
	}
	return 200
}

func sharedOf(s *flow.State) map[string]string {
	shared := map[string]string{}
	for key, value := range s.Root.Shared {
		shared[key] = string(value)
	}
	return shared
}

// history is the answers to all clients, about all tasks.
type history []porcupine.Operation

// of returns the part about one task.
func (h history) of(task string) history {
	var part history
	for _, op := range h {
		if op.Input.(asked).task == task {
			part = append(part, op)
		}
	}
	return part
}

func (h history) tasks() []string {
	seen := map[string]bool{}
	for _, op := range h {
		seen[op.Input.(asked).task] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// check checks for each task whether the core gives the same answers in some order of the requests
// that is consistent with their times.
func (h history) check(plans map[string]*flow.Plan) map[string]porcupine.CheckResult {
	results := map[string]porcupine.CheckResult{}
	for _, task := range h.tasks() {
		results[task] = porcupine.CheckOperationsTimeout(core{plans[task]}.of(task), h.of(task), patience)
	}
	return results
}
