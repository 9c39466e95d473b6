package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// calling returns a wait for a job of a service.
func calling(service string, job flow.CodeJob) flow.CodeWait {
	job.Exec, job.Service = flow.ExecPush, service
	if job.Input == nil {
		job.Input = []byte(`{"n":1}`)
	}
	return flow.CodeWait{Name: service, Use: 1, Kind: flow.CodeCall, Job: &job}
}

// callingFunction returns a task whose function has come to its first wait.
func callingFunction(t *testing.T, waits ...flow.CodeWait) *table {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.hands = waitForEach(waits...)
	tb.tell(flow.Start{Version: "v1"})
	tb.callFunction()
	return tb
}

// callFunction lets the scripted function go on until it waits or ends. Other jobs stay.
func (tb *table) callFunction() {
	for again := true; again; {
		again = false
		for _, a := range tb.open() {
			if a.Node == flow.CodeMain {
				tb.tell(tb.hands(tb.jobs[a]))
				again = true
			}
		}
	}
}

// callOf returns the newest job of a call that a carrier has.
func (tb *table) callOf(service string) (j flow.Job) {
	for at := range tb.jobs {
		if at.Node == service && at.Attempt >= j.Attempt {
			j = tb.jobs[at]
		}
	}
	require.NotEmpty(tb.t, j.Task, "no job of %s", service)
	return j
}

// endCall reports the end of the newest job of a call.
func (tb *table) endCall(service string, r flow.Report) flow.Decision {
	r.Address = tb.callOf(service).Address
	return tb.tell(r)
}

func TestCalledJobsBelongToTheirFunction(t *testing.T) {
	tb := callingFunction(t, calling("ship", flow.CodeJob{TimeoutMS: 500}))
	j := tb.callOf("ship")
	require.Equal(t, "ship", j.Exec.Service)
	require.JSONEq(t, `{"n":1}`, string(j.Input))
	require.JSONEq(t, `{}`, string(j.Params))
	require.EqualValues(t, 500, j.TimeoutMS)
	_, parked := flow.Parked(tb.state)
	require.False(t, parked, "its job is under way")
	tb.endCall("ship", flow.Report{Output: []byte(`7`)})
	require.Equal(t, "7", string(tb.state.Root.Function.Steps[0].Output))
	require.Equal(t, flow.CodeCall, tb.state.Root.Function.Steps[0].Kind)
	tb.callFunction()
	require.Equal(t, "1", string(tb.state.Result()))
}

func TestFailedCallsAreRepeatedWithTheSameKey(t *testing.T) {
	tb := callingFunction(t, calling("ship", flow.CodeJob{Retries: 2, PauseMS: 100}))
	first := tb.callOf("ship")
	tb.endCall("ship", flow.Report{Error: "busy"})
	require.Equal(t, []string{"retry ship"}, waitTexts(tb.state))
	tb.wait(100)
	second := tb.callOf("ship")
	require.Equal(t, first.Key(), second.Key())
	require.NotEqual(t, first.ID(), second.ID())
	tb.endCall("ship", flow.Report{Error: "no such address", Details: []byte(`{"zip":1}`), Fatal: true})
	step := tb.state.Root.Function.Steps[0]
	require.Equal(t, "no such address", step.Error)
	require.JSONEq(t, `{"zip":1}`, string(step.Details))
	require.Equal(t, 2, step.Tries)
}

func TestCallThatTakesTooLongIsWithdrawn(t *testing.T) {
	w := calling("ship", flow.CodeJob{})
	w.MS = 1000
	tb := callingFunction(t, w)
	j := tb.callOf("ship")
	tb.wait(1000)
	require.Equal(t, "the time of the wait is over", tb.state.Root.Function.Steps[0].Error)
	require.NotContains(t, tb.jobs, j.Address, "its job is withdrawn")
	require.Empty(t, tb.tell(flow.Report{Address: j.Address, Output: []byte(`7`)}).Events)
	tb.callFunction()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func TestRaceWithdrawsTheCallsOfItsLosers(t *testing.T) {
	tb := runningFunction(t)
	lost := calling("ship", flow.CodeJob{})
	lost.Name = "first/1/ship"
	tb.beginWaits(inBranch("first/0", unpaid), lost)
	j := tb.callOf("first/1/ship")
	tb.sendSignal("paid")
	tb.decideRace("first")
	require.NotContains(t, tb.jobs, j.Address)
	require.Empty(t, tb.state.Root.Function.Waits)
	require.Empty(t, tb.tell(flow.Report{Address: j.Address, Output: []byte(`7`)}).Events)
}

func TestCallsOfAFunctionThatEndsAreWithdrawn(t *testing.T) {
	tb := runningFunction(t)
	w := calling("ship", flow.CodeJob{})
	w.Name = "side/ship"
	tb.beginWaits(w)
	j := tb.callOf("side/ship")
	tb.tell(flow.Report{Address: functionAt, Given: tb.jobs[functionAt].Given, Output: []byte(`3`)})
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	require.NotContains(t, tb.jobs, j.Address)
}

func TestCancelWithdrawsCallsBeforeTheFunctionUndoes(t *testing.T) {
	tb := callingFunction(t, napping, calling("ship", flow.CodeJob{}))
	tb.wait(1000)
	tb.callFunction()
	j := tb.callOf("ship")
	tb.tell(flow.Cancel{})
	require.NotContains(t, tb.jobs, j.Address)
	require.True(t, tb.jobs[functionAt].Function.Undoes)
	tb.callFunction()
	require.Equal(t, flow.TaskCanceled, tb.state.Status)
}

func TestGentleCancelLetsCallsEnd(t *testing.T) {
	tb := callingFunction(t, calling("ship", flow.CodeJob{}))
	j := tb.callOf("ship")
	tb.tell(flow.Begin{Address: j.Address, Carrier: j.Carrier})
	tb.tell(flow.Cancel{Gently: true})
	tb.callFunction()
	require.False(t, tb.state.Status.Ended(), "the job goes on")
	tb.endCall("ship", flow.Report{Output: []byte(`7`)})
	tb.callFunction()
	require.Equal(t, flow.TaskCanceled, tb.state.Status)
}

func TestRetriedTaskCallsAgainWithTheSameKeyAndLaterAttempts(t *testing.T) {
	w := calling("ship", flow.CodeJob{Retries: 1, PauseMS: 10})
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.hands = func(j flow.Job) flow.Report {
		steps := j.Function.Steps
		switch {
		case len(steps) == 0:
			return flow.Report{Address: j.Address, Given: j.Given,
				GivenUp: &flow.GivenUp{Reason: flow.HeldWaiting, Waits: []flow.CodeWait{w}}}
		case steps[0].Error != "":
			return flow.Report{Address: j.Address, Given: j.Given, Error: steps[0].Error, Fatal: true}
		}
		return flow.Report{Address: j.Address, Given: j.Given, Output: steps[0].Output}
	}
	tb.tell(flow.Start{Version: "v1"})
	tb.callFunction()
	first := tb.callOf("ship")
	tb.endCall("ship", flow.Report{Error: "busy"})
	tb.wait(10)
	tb.endCall("ship", flow.Report{Error: "busy"})
	tb.callFunction()
	require.Equal(t, flow.TaskFailed, tb.state.Status)

	tb.tell(flow.RetryTask{})
	tb.callFunction()
	third := tb.callOf("ship")
	require.Equal(t, 3, third.Attempt, "reports of the first two cannot count for it")
	require.Equal(t, first.Key(), third.Key())
	tb.endCall("ship", flow.Report{Error: "busy"})
	tb.wait(20)
	require.Equal(t, 4, tb.callOf("ship").Attempt, "it is repeated as often as before")
	tb.endCall("ship", flow.Report{Output: []byte(`7`)})
	tb.callFunction()
	require.Equal(t, "7", string(tb.state.Result()))
}

func TestCallsOfATaskThatIsLoadedAgainGoOn(t *testing.T) {
	tb := callingFunction(t, calling("ship", flow.CodeJob{Retries: 1, PauseMS: 100}))
	tb.endCall("ship", flow.Report{Error: "busy"})
	decoded, ok := flow.DecodeSnapshot(flow.EncodeSnapshot(tb.state).Bytes(), tb.state.Plan)
	require.True(t, ok)
	tb.state = decoded
	tb.wait(100)
	require.Equal(t, 2, tb.callOf("ship").Attempt)
	tb.endCall("ship", flow.Report{Output: []byte(`7`)})
	tb.callFunction()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func TestCallsOfAPausedTaskBeginWhenItIsResumed(t *testing.T) {
	tb := runningFunction(t)
	tb.tell(flow.Pause{})
	tb.beginWaits(calling("ship", flow.CodeJob{}))
	for at := range tb.jobs {
		require.NotEqual(t, "ship", at.Node)
	}
	tb.tell(flow.Resume{})
	tb.callOf("ship")
}

func TestCallsThatCannotBeMadeFailTheFunction(t *testing.T) {
	for name, c := range map[string]struct {
		job  *flow.CodeJob
		text string
	}{
		"no job":     {nil, "has no job"},
		"way":        {&flow.CodeJob{Exec: "pigeon", Service: "ship"}, `its job cannot travel as "pigeon"`},
		"no service": {&flow.CodeJob{Exec: flow.ExecPush}, "its service has no name"},
		"retries":    {&flow.CodeJob{Exec: flow.ExecPush, Service: "ship", Retries: -1}, "it has -1 retries"},
		"time":       {&flow.CodeJob{Exec: flow.ExecPush, Service: "ship", TimeoutMS: -1}, "negative time"},
	} {
		t.Run(name, func(t *testing.T) {
			tb := callingFunction(t, flow.CodeWait{Name: "ship", Use: 1, Kind: flow.CodeCall, Job: c.job})
			require.Equal(t, flow.TaskFailed, tb.state.Status)
			require.Contains(t, tb.state.Error, "the wait ship: ")
			require.Contains(t, tb.state.Error, c.text)
		})
	}
}

// TestCallThatEndsWithItsFunctionIsNumberedOnByARetry has a call in a branch, whose function fails
// meanwhile.
func TestCallThatEndsWithItsFunctionIsNumberedOnByARetry(t *testing.T) {
	tb := runningFunction(t)
	w := calling("ship", flow.CodeJob{})
	w.Name = "side/ship"
	tb.beginWaits(w)
	first := tb.callOf("side/ship")
	tb.tell(flow.Report{Address: functionAt, Given: tb.jobs[functionAt].Given, Error: "no paper", Fatal: true})
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.NotContains(t, tb.jobs, first.Address)

	tb.tell(flow.RetryTask{})
	var again flow.Address
	for at := range tb.jobs {
		again = at
	}
	tb.beginWaitsAt(again, w)
	second := tb.callOf("side/ship")
	require.Equal(t, 2, second.Attempt, "a late report of the first cannot count for it")
	require.Equal(t, first.Key(), second.Key())
}
