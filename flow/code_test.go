package flow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

var functionAt = flow.Address{Node: flow.CodeMain, Visit: 1, Attempt: 1}

// newFunction returns a task whose flow is a function, delivered to the member m.
func newFunction(t *testing.T) *errand {
	e := &errand{T: t, now: 1_000, state: flow.NewState("t", flowtest.Plan(t, `{"mode":"code","code":"f"}`))}
	e.do("m", flow.Start{Version: "v"})
	return e
}

func recordedStep(given int, name string) flow.RecordSteps {
	return flow.RecordSteps{Address: functionAt, Given: given,
		Steps: []flow.CodeStep{{Name: name, Use: 1, Kind: flow.CodeDo, Output: []byte(`1`), Tries: 1}}}
}

func TestResultsOfAnOlderDeliveryOfAFunctionAreRefused(t *testing.T) {
	e := newFunction(t)
	e.do("m", recordedStep(0, "a"))
	jobs := dispatched(e.do("m", flow.Report{Address: functionAt, Lost: true}).Effects)
	require.Len(t, jobs, 1)
	require.Equal(t, 1, jobs[0].Given)
	require.Len(t, jobs[0].Function.Steps, 1, "the next carrier gets what was recorded")

	require.Equal(t, "conflict", e.refused(recordedStep(0, "b")))
	require.Empty(t, e.do("m", flow.Report{Address: functionAt, Output: []byte(`2`)}).Events, "nor does its end count")
	e.do("m", recordedStep(1, "b"))
	require.Empty(t, e.do("m", recordedStep(1, "b")).Events, "what is recorded already changes nothing")
	e.do("m", flow.Report{Address: functionAt, Given: 1, Output: []byte(`3`)})
	require.Equal(t, flow.TaskCompleted, e.state.Status)
	require.Equal(t, "3", string(e.state.Result()))
}

// waitForEach returns a function that waits for several things, one after another, and returns
// their number.
func waitForEach(waits ...flow.CodeWait) func(flow.Job) flow.Report {
	return func(j flow.Job) flow.Report {
		if j.Function.Undoes {
			return flow.Report{Address: j.Address, Given: j.Given, Error: "the task was canceled", Fatal: true}
		}
		for i, w := range waits {
			if i == len(j.Function.Steps) {
				return flow.Report{Address: j.Address, Given: j.Given,
					GivenUp: &flow.GivenUp{Reason: flow.HeldWaiting, Waits: []flow.CodeWait{w}}}
			}
		}
		return flow.Report{Address: j.Address, Given: j.Given, Output: fmt.Appendf(nil, "%d", len(j.Function.Steps))}
	}
}

// waitingFunction returns a task whose function has come to its first wait.
func waitingFunction(t *testing.T, waits ...flow.CodeWait) *table {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.hands = waitForEach(waits...)
	_, err := tb.do(flow.Start{Version: "v1"})
	require.NoError(t, err)
	tb.work()
	return tb
}

// waitTexts returns the kinds and the names of the waits of a task.
func waitTexts(s *flow.State) (kinds []string) {
	for _, w := range flow.Waiting(s) {
		kinds = append(kinds, w.For+" "+w.Node)
	}
	return kinds
}

var (
	napping = flow.CodeWait{Name: "nap", Use: 1, Kind: flow.CodeSleep, MS: 1000}
	unpaid  = flow.CodeWait{Name: "paid", Use: 1, Kind: flow.CodeSignal, Key: "paid", MS: 5000}
	unasked = flow.CodeWait{Name: "order", Use: 1, Kind: flow.CodeApproval, Key: "order"}
	failing = flow.CodeWait{Name: "ring", Use: 1, Kind: flow.CodeRetry, MS: 1000, Tries: 2, Error: "busy"}
)

func TestFunctionThatWaitsIsParked(t *testing.T) {
	tb := waitingFunction(t, napping, unpaid, unasked, failing)
	require.Equal(t, []string{"timer nap"}, waitTexts(tb.state))
	due, parked := flow.Parked(tb.state)
	require.True(t, parked)
	require.EqualValues(t, epoch+1000, due)
	tb.wait(1000)
	tb.work()
	require.Equal(t, []string{"signal paid"}, waitTexts(tb.state))
	_, err := tb.do(flow.Signal{Key: "paid", Value: []byte(`7`)})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, []string{"approval order"}, waitTexts(tb.state))
	_, err = tb.do(flow.Answer{Address: flow.Address{Node: "order", Visit: 1}, Action: "approved"})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, []string{"retry ring"}, waitTexts(tb.state))
	tb.wait(1000)
	tb.work()
	require.Equal(t, "4", string(tb.state.Result()))
}

func TestWaitOfAFunctionTimesOutAndItsLateSignalIsKept(t *testing.T) {
	again := unpaid
	again.Use = 2
	tb := waitingFunction(t, unpaid, again)
	tb.wait(5000)
	require.Equal(t, "timeout", tb.state.Root.Function.Steps[0].Error)
	_, err := tb.do(flow.Signal{Key: "paid", Value: []byte(`7`)})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, "7", string(tb.state.Root.Function.Steps[1].Output), "it ends the next wait at once")
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	require.Empty(t, tb.state.Signals)
}

func TestPausedFunctionGoesOnBehindItsWaitWhenItIsResumed(t *testing.T) {
	for _, w := range []flow.CodeWait{napping, unpaid} {
		tb := waitingFunction(t, w)
		_, err := tb.do(flow.Pause{})
		require.NoError(t, err)
		_, err = tb.do(flow.Signal{Key: "paid", Value: []byte(`7`)})
		require.NoError(t, err)
		tb.wait(10_000)
		require.Len(t, tb.state.Root.Function.Steps, 1)
		require.Empty(t, tb.jobs)
		_, err = tb.do(flow.Resume{})
		require.NoError(t, err)
		tb.work()
		require.Equal(t, flow.TaskCompleted, tb.state.Status)
	}
}

func TestTimeoutOfAWaitStandsStillWhileTheTaskIsPaused(t *testing.T) {
	tb := waitingFunction(t, unpaid)
	tb.wait(1000)
	_, err := tb.do(flow.Pause{})
	require.NoError(t, err)
	tb.wait(100_000)
	_, err = tb.do(flow.Resume{})
	require.NoError(t, err)
	tb.wait(3999)
	require.Empty(t, tb.state.Root.Function.Steps)
	tb.wait(1)
	require.Len(t, tb.state.Root.Function.Steps, 1)
}

func TestCanceledFunctionThatWaitsIsDeliveredToUndo(t *testing.T) {
	tb := waitingFunction(t, unasked)
	_, err := tb.do(flow.Cancel{})
	require.NoError(t, err)
	require.True(t, tb.jobs[functionAt].Function.Undoes)
	require.Empty(t, tb.state.Approvals())
	require.Empty(t, flow.Outstanding(tb.state)[1:], "its waits are over")

	_, err = tb.do(flow.Cancel{})
	require.NoError(t, err)
	require.True(t, tb.jobs[functionAt].Function.Undoes, "a second cancel does not end the undoing")
	_, err = tb.do(flow.Cancel{Force: true})
	require.NoError(t, err)
	require.Equal(t, flow.TaskCanceled, tb.state.Status)

	tb = waitingFunction(t, unasked)
	_, err = tb.do(flow.Cancel{Gently: true})
	require.NoError(t, err)
	require.Equal(t, flow.TaskCanceled, tb.state.Status, "it has recorded nothing")
}

// paidFunction returns a task whose function has recorded a step. It runs, or has come to its first
// wait.
func paidFunction(t *testing.T, definition string, waits ...flow.CodeWait) *table {
	tb := newTable(t, flowtest.Plan(t, definition))
	tb.tell(flow.Start{Version: "v1"})
	tb.tell(recordedStep(tb.jobs[functionAt].Given, "pay"))
	if len(waits) > 0 {
		tb.hands = waitForEach(waits...)
		tb.work()
	}
	return tb
}

func TestGentlyCanceledFunctionUndoesItsRecordedSteps(t *testing.T) {
	for name, waits := range map[string][]flow.CodeWait{"while it waits": {unasked}, "while it runs": nil} {
		tb := paidFunction(t, `{"mode":"code","code":"f"}`, waits...)
		given := tb.jobs[functionAt].Given
		_, err := tb.do(flow.Cancel{Gently: true})
		require.NoError(t, err, name)
		if waits == nil { // its carrier stops behind the step
			require.False(t, tb.jobs[functionAt].Function.Undoes, name)
			_, err = tb.do(flow.Report{Address: functionAt, Given: given, GivenUp: &flow.GivenUp{Reason: flow.HeldPaused}})
			require.NoError(t, err, name)
		}
		require.True(t, tb.jobs[functionAt].Function.Undoes, name)
		_, err = tb.do(flow.Cancel{})
		require.NoError(t, err, name)
		require.False(t, tb.state.Status.Ended(), name)
	}
}

func TestFunctionThatReturnsAfterItsTaskWasCanceledUndoesItsWork(t *testing.T) {
	e := newFunction(t)
	e.do("m", recordedStep(0, "a"))
	e.do("m", flow.Cancel{Gently: true})
	jobs := dispatched(e.do("m", flow.Report{Address: functionAt, Output: []byte(`2`)}).Effects)
	require.Len(t, jobs, 1)
	require.True(t, jobs[0].Function.Undoes)
	require.False(t, e.state.Status.Ended())
	e.do("m", flow.Report{Address: functionAt, Given: 1, Error: "the task was canceled", Fatal: true})
	require.Equal(t, flow.TaskCanceled, e.state.Status)
}

// TestCanceledFunctionThatWaitsEndsWithItsAttempt rings an alarm between the parts of a cancel that
// has no room in one decision.
func TestCanceledFunctionThatWaitsEndsWithItsAttempt(t *testing.T) {
	e := newFunction(t)
	e.do("m", flow.Report{Address: functionAt, GivenUp: &flow.GivenUp{Reason: flow.HeldWaiting, Waits: []flow.CodeWait{unpaid}}})
	d, err := flow.Decide(e.state, flow.Cancel{Gently: true}, flow.Env{Now: e.now, Member: "m", Limits: flow.Limits{Events: 1}})
	require.NoError(t, err)
	require.NotNil(t, d.More)
	e.do("m", flow.Ring{Alarm: flow.Alarm{At: e.now, Kind: flow.AlarmTask}})
	require.False(t, e.state.Status.Ended())
	d = e.do("m", d.More)
	require.Equal(t, []flow.EventType{flow.AttemptEnded, flow.TaskEnded}, []flow.EventType{d.Events[0].Type, d.Events[1].Type})
}

func TestForkOfAFunctionGoesOnWithItsWait(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f","timeout_ms":500}`))
	tb.hands = waitForEach(unpaid, napping)
	tb.tell(flow.Start{Version: "v1"})
	tb.work()
	tb.tell(flow.Signal{Key: "paid", Value: []byte(`7`)})
	tb.work()
	tb.wait(500) // it took too long
	tb.work()
	require.Equal(t, flow.TaskFailed, tb.state.Status)

	patient := flowtest.Plan(t, `{"mode":"code","code":"f"}`)
	next, _ := tb.forked(t, patient, "", "")
	require.Len(t, next.state.Root.Function.Steps, 1)
	require.Empty(t, next.state.Signals)
	next.work()
	require.Equal(t, []string{"timer nap"}, waitTexts(next.state))
	next.wait(1000)
	next.work()
	require.Equal(t, "2", string(next.state.Result()))

	next, _ = tb.forked(t, patient, "paid", "")
	require.Empty(t, next.state.Root.Function.Steps)
	next.work()
	require.Equal(t, []string{"signal paid"}, waitTexts(next.state), "it waits for a new one")
}

func TestWaitsThatCannotBeginFailTheFunction(t *testing.T) {
	for text, w := range map[string]flow.CodeWait{
		"cannot have the name main":           {Name: "main", Use: 1, Kind: flow.CodeSleep},
		"in a form that this member does not": {Name: "a", Kind: flow.CodeSleep},
		"begins with $":                       {Name: "a", Use: 1, Kind: flow.CodeSignal, Key: "$x"},
	} {
		tb := waitingFunction(t, w)
		require.Equal(t, flow.TaskFailed, tb.state.Status)
		require.Contains(t, tb.state.Error, text)
	}
}

// TestFunctionIsDeliveredOnceForSeveralEnds ends two waits of a function that only waits.
func TestFunctionIsDeliveredOnceForSeveralEnds(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.hands = func(j flow.Job) flow.Report {
		if len(j.Function.Steps) == 2 {
			return flow.Report{Address: j.Address, Given: j.Given, Output: []byte("2")}
		}
		return flow.Report{Address: j.Address, Given: j.Given,
			GivenUp: &flow.GivenUp{Reason: flow.HeldWaiting, Waits: []flow.CodeWait{inBranch("a", napping), inBranch("b", napping)}}}
	}
	_, err := tb.do(flow.Start{Version: "v1"})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, []string{"timer a/nap", "timer b/nap"}, waitTexts(tb.state))
	tb.wait(1000)
	tb.work()
	tb.wait(1000)
	tb.work()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

// TestFunctionUndoesItsWorkWhenTheTimeOfItsTaskIsOver lets the time of a task pass while its
// function runs, and while that waits.
func TestFunctionUndoesItsWorkWhenTheTimeOfItsTaskIsOver(t *testing.T) {
	for name, waits := range map[string][]flow.CodeWait{"while it waits": {unasked}, "while it runs": nil} {
		tb := paidFunction(t, `{"mode":"code","code":"f","timeout_ms":500}`, waits...)
		tb.wait(500)
		require.True(t, tb.jobs[functionAt].Function.Undoes, name)
		tb.wait(10_000)
		require.False(t, tb.state.Status.Ended(), "%s: it may take its time", name)
		_, err := tb.do(flow.Report{Address: functionAt, Given: tb.jobs[functionAt].Given, Error: "the task was canceled", Fatal: true})
		require.NoError(t, err, name)
		require.Equal(t, flow.TaskFailed, tb.state.Status, name)
		require.Equal(t, "timeout: the task has not ended within its timeout_ms", tb.state.Error, name)
	}
}

// restartFunction records a step of the function that was called last, and lets it begin anew.
func (tb *table) restartFunction(input string) flow.Address {
	at := tb.open()[0]
	given := tb.jobs[at].Given
	tb.tell(flow.RecordSteps{Address: at, Given: given, Steps: []flow.CodeStep{{Name: "work", Use: 1, Kind: flow.CodeDo}}})
	tb.tell(flow.Report{Address: at, Given: given, Output: []byte(input), GivenUp: &flow.GivenUp{Restarts: true}})
	return at
}

func TestFunctionBeginsAnewWithAnotherInput(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.env.Limits.Steps = 3
	tb.tell(flow.Start{Version: "v1", Params: []byte(`{"n":0}`)})
	keys := map[string]bool{}
	for n := 1; n <= 5; n++ {
		at := tb.open()[0]
		job := tb.jobs[at]
		require.JSONEq(t, fmt.Sprintf(`{"n":%d}`, n-1), string(job.Params))
		require.Empty(t, job.Function.Steps)
		keys[job.Key()] = true
		tb.beginWaitsAt(at, unpaid)
		tb.restartFunction(fmt.Sprintf(`{"n":%d}`, n))
		require.Empty(t, tb.state.Root.Function.Steps)
		require.Empty(t, tb.state.Root.Function.Waits, "its waits are withdrawn")
	}
	require.Len(t, keys, 5, "each call has an idempotency key of its own")
	tb.tell(flow.Pause{})
	at := tb.restartFunction(`{"n":6}`)
	require.Empty(t, tb.open(), "a paused function does not begin anew yet")
	tb.tell(flow.Resume{})
	require.Equal(t, at.Visit+1, tb.open()[0].Visit)
	tb.tell(flow.Report{Address: tb.open()[0], Output: []byte(`7`)})
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	require.Equal(t, "7", string(tb.state.Result()))
}

func TestForkWithOtherParamsReplacesTheInputOfARestart(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.tell(flow.Start{Version: "v1", Params: []byte(`{"n":0}`)})
	tb.restartFunction(`{"n":1}`)
	inputOf := func(tb *table) string { return string(tb.jobs[tb.open()[0]].Params) }
	at := tb.open()[0]
	tb.tell(flow.Signal{Key: "input", Value: []byte(`{"n":9}`)}) // it is another value of that name
	tb.tell(flow.Report{Address: at, Given: tb.jobs[at].Given, Error: "no", Fatal: true})
	for params, input := range map[string]string{`{"n":0}`: `{"n":1}`, `{"n":8}`: `{"n":8}`} {
		fork, _ := tb.forked(t, tb.state.Plan, "", params)
		require.JSONEq(t, input, inputOf(fork))
	}
	tb.tell(flow.RetryTask{})
	require.JSONEq(t, `{"n":1}`, inputOf(tb))
}

func TestCanceledFunctionDoesNotBeginAnew(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.tell(flow.Start{Version: "v1"})
	tb.restartFunction(`{}`)
	at := tb.open()[0]
	tb.tell(flow.Cancel{})
	tb.tell(flow.Report{Address: at, Given: tb.jobs[at].Given, Output: []byte(`{}`), GivenUp: &flow.GivenUp{Restarts: true}})
	require.Equal(t, flow.TaskCanceled, tb.state.Status)
	require.Equal(t, 2, tb.state.Root.Visits[flow.CodeMain])
}

func TestForkGoesOnFromAStepBeforeARestart(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.tell(flow.Start{Version: "v1", Params: []byte(`{"n":0}`)})
	tb.restartFunction(`{"n":1}`)
	tb.restartFunction(`{"n":2}`)
	at := tb.open()[0]
	tb.tell(flow.Report{Address: at, Given: tb.jobs[at].Given, Error: "no", Fatal: true})
	fork, _ := tb.forked(t, tb.state.Plan, "work", "")
	require.JSONEq(t, `{"n":0}`, string(fork.jobs[fork.open()[0]].Params))
	require.Empty(t, fork.state.Root.Function.Steps)
}

// TestFunctionGoesOnWithSharedThatIsTooLarge lets a signal that the function waits for exceed the
// limit.
func TestFunctionGoesOnWithSharedThatIsTooLarge(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.env.Limits.Shared = 1_000
	tb.tell(flow.Start{Version: "v1"})
	at := tb.open()[0]
	record := func(kind flow.CodeKind, name, value string) error {
		_, err := tb.do(flow.RecordSteps{Address: at, Given: tb.jobs[at].Given,
			Steps: []flow.CodeStep{{Name: name, Use: 1, Kind: kind, Output: []byte(value)}}})
		return err
	}
	half := `"` + strings.Repeat("x", 400) + `"`
	require.NoError(t, record(flow.CodeSet, "half", half))
	tb.beginWaits(unpaid)
	tb.tell(flow.Signal{Key: "paid", Value: []byte(`"` + strings.Repeat("x", 590) + `"`)})
	require.NoError(t, record(flow.CodeUndo, "release", "null"))
	require.ErrorContains(t, record(flow.CodeSet, "more", `1`), "more than the limit of 1000")
	require.NoError(t, record(flow.CodeSet, "aside/half", `1`), "a value that shrinks")
}

func TestQuestionsOfAFunctionAreLimitedTogether(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.env.Limits.Shared = 1_000
	tb.tell(flow.Start{Version: "v1"})
	ask := func(name string) flow.RecordSteps {
		return flow.RecordSteps{Address: functionAt, Given: tb.jobs[functionAt].Given, Waits: []flow.CodeWait{
			{Name: name, Use: 1, Kind: flow.CodeApproval, Key: name, Question: []byte(`{"text":"` + strings.Repeat("x", 400) + `"}`)}}}
	}
	tb.tell(ask("one"))
	_, err := tb.do(ask("two"))
	require.NoError(t, err)
	_, err = tb.do(ask("three"))
	require.ErrorContains(t, err, "limit: the open questions and calls of the function would have")
}

// holdAbsent holds the function of a task, because nothing has it.
func holdAbsent(e *errand, given int) {
	e.do("m", flow.Report{Address: functionAt, Given: given, GivenUp: &flow.GivenUp{Reason: flow.HeldAbsent + "f"}})
}

func TestHeldFunctionIsReleasedWhenACarrierMayHaveIt(t *testing.T) {
	e := newFunction(t)
	release := flow.ReleaseFunction{Address: functionAt}
	require.Equal(t, "busy", e.refused(release), "the task does not know yet that the function is held")
	holdAbsent(e, 0)
	jobs := dispatched(e.do("m", release).Effects)
	require.Len(t, jobs, 1)
	require.Equal(t, 1, jobs[0].Given)
	require.Equal(t, "conflict", e.refused(release), "it was of the delivery before")
}

func TestHeldFunctionOfAPausedTaskIsReleasedByItsResume(t *testing.T) {
	e := newFunction(t)
	holdAbsent(e, 0)
	e.do("m", flow.Pause{})
	require.Empty(t, dispatched(e.do("m", flow.ReleaseFunction{Address: functionAt}).Effects))
	require.Len(t, dispatched(e.do("m", flow.Resume{}).Effects), 1)
}

func TestCanceledFunctionThatNothingHasIsDeliveredToUndo(t *testing.T) {
	e := newFunction(t)
	e.do("m", recordedStep(0, "a"))
	holdAbsent(e, 0)
	jobs := dispatched(e.do("m", flow.Cancel{}).Effects)
	require.Len(t, jobs, 1)
	require.True(t, jobs[0].Function.Undoes)
}
