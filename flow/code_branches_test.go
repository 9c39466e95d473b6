package flow_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// runningFunction returns a task whose function is with its carrier.
func runningFunction(t *testing.T) *table {
	tb := newTable(t, flowtest.Plan(t, `{"mode":"code","code":"f"}`))
	tb.tell(flow.Start{Version: "v1"})
	return tb
}

// beginWaits begins waits of the function while it runs.
func (tb *table) beginWaits(waits ...flow.CodeWait) flow.Decision {
	return tb.beginWaitsAt(functionAt, waits...)
}

func (tb *table) beginWaitsAt(at flow.Address, waits ...flow.CodeWait) flow.Decision {
	return tb.tell(flow.RecordSteps{Address: at, Given: tb.jobs[at].Given, Waits: waits})
}

// carrierSteps returns the steps that the carrier of the function has.
func (tb *table) carrierSteps() (places []string) {
	for _, s := range tb.jobs[functionAt].Function.Steps {
		places = append(places, s.Place())
	}
	return places
}

func (tb *table) decideRace(name string) flow.Decision {
	return tb.tell(flow.RecordSteps{Address: functionAt, Given: tb.jobs[functionAt].Given,
		Steps: []flow.CodeStep{{Name: name, Use: 1, Kind: flow.CodeRace, Output: []byte(`0`)}}})
}

// inBranch returns a wait of a branch.
func inBranch(branch string, w flow.CodeWait) flow.CodeWait {
	w.Name = branch + "/" + w.Name
	return w
}

func (tb *table) sendSignal(key string) {
	tb.tell(flow.Signal{Key: key, Value: []byte(`7`)})
}

func TestCarrierOfAFunctionGetsTheEndsOfItsWaits(t *testing.T) {
	for name, reload := range map[string]bool{"at once": false, "after a reload": true} {
		t.Run(name, func(t *testing.T) {
			tb := runningFunction(t)
			tb.beginWaits(napping, unpaid, unasked, failing)
			require.Equal(t, []string{"timer nap", "signal paid", "approval order", "retry ring"}, waitTexts(tb.state)[1:])
			if reload {
				tb.move("m2", 0, "m1")
			}
			tb.wait(1000)
			require.Equal(t, []string{"nap", "ring"}, tb.carrierSteps())
			tb.sendSignal("paid")
			tb.tell(flow.Answer{Address: flow.Address{Node: "order", Visit: 1}, Action: "approved"})
			require.Equal(t, []string{"nap", "ring", "paid", "order"}, tb.carrierSteps())
			require.Equal(t, "m1", tb.jobs[functionAt].Carrier)
			require.Zero(t, tb.jobs[functionAt].Given, "it is not delivered again")
			tb.tell(flow.Report{Address: functionAt, Output: []byte(`4`)})
			require.Equal(t, flow.TaskCompleted, tb.state.Status)
		})
	}
}

func TestWaitThatIsAskedForAgainChangesNothing(t *testing.T) {
	tb := runningFunction(t)
	tb.beginWaits(napping)
	require.Empty(t, tb.beginWaits(napping).Events, "it is active")
	tb.wait(1000)
	d := tb.beginWaits(napping)
	require.Empty(t, d.Events)
	require.Equal(t, []string{"nap", "nap"}, tb.carrierSteps(), "it gets the end again")
	require.Equal(t, tb.state.Root.Function.Steps[0], d.Effects[0].(flow.WaitEnded).Step)

	_, err := tb.do(flow.RecordSteps{Address: functionAt, Given: 1, Waits: []flow.CodeWait{napping}})
	require.ErrorIs(t, err, flow.ErrOver, "another delivery")
}

func TestWaitThatIsOverAtOnceEndsForTheCarrier(t *testing.T) {
	tb := runningFunction(t)
	tb.sendSignal("paid")
	now := napping
	now.MS = 0
	tb.beginWaits(now, unpaid)
	require.Equal(t, []string{"nap", "paid"}, tb.carrierSteps())
}

func TestFunctionThatWaitsForSeveralThingsGetsAllThatAreOver(t *testing.T) {
	tb := runningFunction(t)
	tb.sendSignal("paid")
	now := napping
	now.MS = 0
	tb.tell(flow.Report{Address: functionAt, GivenUp: &flow.GivenUp{Reason: flow.HeldWaiting,
		Waits: []flow.CodeWait{unasked, now, unpaid}}})
	require.Equal(t, 1, tb.jobs[functionAt].Given)
	require.Equal(t, []string{"nap", "paid"}, tb.carrierSteps())
}

func TestRunningFunctionThatIsLostGetsTheEndsWithItsNextDelivery(t *testing.T) {
	tb := runningFunction(t)
	tb.beginWaits(napping, unpaid)
	tb.wait(1000)
	tb.crash("m2", 0)
	require.Equal(t, []any{1, "m2"}, []any{tb.jobs[functionAt].Given, tb.jobs[functionAt].Carrier})
	require.Equal(t, []string{"nap"}, tb.carrierSteps())
	tb.sendSignal("paid")
	require.Equal(t, []string{"nap", "paid"}, tb.carrierSteps())
}

func TestRaceWithdrawsTheWaitsOfItsBranches(t *testing.T) {
	tb := runningFunction(t)
	tb.beginWaits(inBranch("first/0", napping), inBranch("first/1", unpaid), inBranch("first/2", unasked),
		inBranch("first#2/0", failing), unpaid)
	require.Len(t, tb.state.Approvals(), 1)
	tb.decideRace("first")
	require.Empty(t, tb.state.Approvals())
	require.Len(t, tb.state.Root.Function.Waits, 2, "the others do not belong to it")
	tb.sendSignal("paid")
	require.Equal(t, []string{"first", "paid"}, tb.recordedPlaces())
	tb.wait(10_000)
	require.Equal(t, []string{"first", "paid", "first#2/0/ring"}, tb.recordedPlaces())

	require.Empty(t, tb.beginWaits(inBranch("first/1", napping)).Events, "a late branch of it does not wait")
	tb.tell(flow.Report{Address: functionAt, GivenUp: &flow.GivenUp{Reason: flow.HeldWaiting,
		Waits: []flow.CodeWait{inBranch("first/1", napping)}}})
	require.Equal(t, 1, tb.jobs[functionAt].Given, "nor does it park the function")
}

// recordedPlaces returns the places of the recorded steps.
func (tb *table) recordedPlaces() (places []string) {
	for _, s := range tb.state.Root.Function.Steps {
		places = append(places, s.Place())
	}
	return places
}

func TestLateSignalOfALostBranchEndsALaterWait(t *testing.T) {
	tb := runningFunction(t)
	tb.beginWaits(inBranch("first/1", unpaid))
	tb.decideRace("first")
	tb.sendSignal("paid")
	require.Equal(t, []string{"first"}, tb.recordedPlaces())
	tb.beginWaits(unpaid)
	require.Equal(t, []string{"first", "paid"}, tb.recordedPlaces())
	require.Empty(t, tb.state.Signals)
}

func TestPausedFunctionStopsBehindTheWaitsThatItBegan(t *testing.T) {
	tb := runningFunction(t)
	tb.tell(flow.Pause{})
	tb.beginWaits(napping, unpaid)
	require.True(t, tb.state.CodeStops(functionAt))
	require.Len(t, tb.state.Root.Function.Waits, 2)
	tb.sendSignal("paid")
	require.Equal(t, []string{"paid"}, tb.carrierSteps())
	tb.tell(flow.Report{Address: functionAt, GivenUp: &flow.GivenUp{Reason: flow.HeldPaused}})
	tb.wait(100)
	tb.tell(flow.Resume{})
	require.Equal(t, 1, tb.jobs[functionAt].Given)
	require.Equal(t, []string{"paid"}, tb.carrierSteps())
	tb.wait(1000)
	require.Equal(t, []string{"paid", "nap"}, tb.carrierSteps())
}

func TestCanceledFunctionBeginsNoWaits(t *testing.T) {
	tb := runningFunction(t)
	tb.tell(recordedStep(0, "pay"))
	tb.beginWaits(unasked, napping)
	tb.tell(flow.Cancel{Gently: true})
	require.Empty(t, tb.state.Approvals())
	require.Empty(t, tb.beginWaits(unpaid).Events)
	require.True(t, tb.state.CodeStops(functionAt))
	tb.wait(10_000)
	require.Equal(t, []string{"pay"}, tb.recordedPlaces())
	tb.tell(flow.Report{Address: functionAt, GivenUp: &flow.GivenUp{Reason: flow.HeldPaused}})
	require.True(t, tb.jobs[functionAt].Function.Undoes)
	tb.tell(flow.Report{Address: functionAt, Given: 1, Error: "the task was canceled", Fatal: true})
	require.Equal(t, flow.TaskCanceled, tb.state.Status)
}

func TestWaitsThatCannotBeginAreRefused(t *testing.T) {
	again := napping
	again.Use = 2
	for text, waits := range map[string][]flow.CodeWait{
		"cannot have the name main":     {{Name: "main", Use: 1, Kind: flow.CodeSleep}},
		"already waits for nap":         {again},
		"already waits for paid":        {unpaid, {Name: "paid", Use: 2, Kind: flow.CodeSignal, Key: "paid"}},
		"begins 257 waits at once":      manyWaits(257),
		"form that this member does no": {{Name: "a", Use: 1, Kind: flow.CodeDo}},
	} {
		tb := runningFunction(t)
		tb.beginWaits(napping)
		_, err := tb.do(flow.RecordSteps{Address: functionAt, Waits: waits})
		require.ErrorContains(t, err, text)
	}
}

// manyWaits returns waits of different names.
func manyWaits(n int) (waits []flow.CodeWait) {
	for i := range n {
		waits = append(waits, inBranch(strconv.Itoa(i), unasked))
	}
	return waits
}

func TestFunctionMayBeGivenUpWithMoreWaitsThanBeginAtOnce(t *testing.T) {
	tb := runningFunction(t)
	waits := manyWaits(600)
	tb.beginWaits(waits[:256]...)
	tb.beginWaits(waits[256:512]...)
	tb.tell(flow.Report{Address: functionAt, GivenUp: &flow.GivenUp{Reason: flow.HeldWaiting, Waits: waits}})
	require.Len(t, tb.state.Root.Function.Waits, 600)
	_, parked := flow.Parked(tb.state)
	require.True(t, parked)
}

func TestWithdrawnWaitsAreShownAsSkipped(t *testing.T) {
	tb := runningFunction(t)
	tb.beginWaits(inBranch("first/0", napping), inBranch("first/1", unpaid), unasked)
	tb.wait(1000)
	tb.decideRace("first")
	for _, c := range []struct {
		states []flow.StepStatus
		want   []string
	}{
		{nil, []string{"main started", "first/0/nap completed", "first/1/paid skipped", "order started", "first completed"}},
		{[]flow.StepStatus{flow.StepSkipped}, []string{"first/1/paid skipped"}},
		{[]flow.StepStatus{flow.StepStarted}, []string{"main started", "order started"}},
	} {
		page := flow.NewStepPage(flow.StepQuery{Most: 100, Bytes: 1 << 20, States: c.states}, false)
		page.From(flow.NewState("task-1", tb.state.Plan))
		for i := range tb.events {
			page.Apply(&tb.events[i], flow.Place{Seq: 1, Index: i + 1})
		}
		page.Finish()
		var got []string
		for _, v := range page.Steps {
			got = append(got, v.Address.Node+" "+string(v.Status))
			require.Equal(t, v.Status == flow.StepSkipped, v.Reason == flow.ReasonWithdrawn)
		}
		require.Equal(t, c.want, got)
	}
}

func TestPageOfStepsNoticesAWaitThatHasBegun(t *testing.T) {
	tb := runningFunction(t)
	page := flow.NewStepPage(flow.StepQuery{Most: 100, Bytes: 1 << 20}, false)
	page.From(flow.NewState("task-1", tb.state.Plan))
	for i := range tb.events {
		page.Apply(&tb.events[i], flow.Place{Seq: 1, Index: i + 1})
	}
	require.True(t, page.Idle(tb.state))
	tb.beginWaits(napping)
	require.False(t, page.Idle(tb.state))
}
