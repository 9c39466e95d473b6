package flow_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// carried returns a task with a job that member m has dispatched.
func carried(t *testing.T) (s *flow.State, do func(flow.Command) []flow.Effect) {
	s = flow.NewState("t", flowtest.Plan(t, `{"start":"a","nodes":{"a":{"exec_type":"push","service":"s"}}}`))
	do = func(c flow.Command) []flow.Effect {
		d, err := flow.Decide(s, c, flow.Env{Now: 1_000, Member: "m"})
		require.NoError(t, err)
		return d.Effects
	}
	do(flow.Start{Version: "v"})
	return s, do
}

func dispatched(effects []flow.Effect) (jobs []flow.Job) {
	for _, e := range effects {
		if d, ok := e.(flow.Dispatch); ok {
			jobs = append(jobs, d.Job)
		}
	}
	return jobs
}

func TestAJobOfALostCarrierIsRedeliveredUpToTheLimit(t *testing.T) {
	s, do := carried(t)
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	for lost := range flow.DefaultLimits.Deliveries - 1 {
		jobs := dispatched(do(flow.Report{Address: at, Lost: true, Given: lost}))
		require.Len(t, jobs, 1)
		require.Equal(t, at, jobs[0].Address, "it stays the same attempt")
		require.Equal(t, lost+1, jobs[0].Deliveries)
		require.Equal(t, "m", jobs[0].Carrier)
		require.True(t, jobs[0].Again, "that it is begun is stored from now on")
		require.Empty(t, do(flow.Report{Address: at, Lost: true, Given: lost}), "the same loss counts once")
	}
	do(flow.Report{Address: at, Lost: true, Given: flow.DefaultLimits.Deliveries - 1})
	require.Equal(t, flow.TaskFailed, s.Status)
	require.Contains(t, s.Error, "given up after 5 deliveries")
}

func TestAdoptedWorkIsRedeliveredWithoutLimit(t *testing.T) {
	for name, node := range map[string]string{
		"work outside": `{"exec_type":"external","service":"s"}`,
		"a container":  `{"exec":{"type":"container","image":"i","command":["x"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := flow.NewState("t", flowtest.Plan(t, `{"mode":"dag","nodes":{"a":`+node+`}}`))
			do := func(member string, c flow.Command) []flow.Job {
				d, err := flow.Decide(s, c, flow.Env{Now: 1_000, Member: member})
				require.NoError(t, err)
				return dispatched(d.Effects)
			}
			do("m0", flow.Start{Version: "v"})
			at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
			for lost := range 4 * flow.DefaultLimits.Deliveries {
				jobs := do(fmt.Sprint("m", lost+1), flow.Recover{})
				require.Len(t, jobs, 1)
				require.Equal(t, []any{at, lost + 1, true}, []any{jobs[0].Address, jobs[0].Given,
					jobs[0].Again}, "it stays the same attempt, which may have begun")
				do(fmt.Sprint("m", lost+1), flow.Begin{Address: at, Carrier: jobs[0].Carrier})
			}
			require.Equal(t, flow.TaskRunning, s.Status)
			do("m", flow.Report{Address: at, Deferred: []flow.External{{Service: "s", ID: "x"}}})
			do("m", flow.ExternalEnded{Address: at, Output: []byte(`1`)})
			require.Equal(t, flow.TaskCompleted, s.Status)
		})
	}
}

func TestAnUnbegunJobIsRedeliveredWithoutCountingALoss(t *testing.T) {
	_, do := carried(t)
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	for given := range 2 * flow.DefaultLimits.Deliveries {
		jobs := dispatched(do(flow.Report{Address: at, Lost: true, Unbegun: true, Given: given}))
		require.Len(t, jobs, 1)
		require.Zero(t, jobs[0].Deliveries)
		require.Equal(t, given+1, jobs[0].Given)
	}
}

func TestAnUnbegunJobCanPassToAnotherMember(t *testing.T) {
	s, do := carried(t)
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	pass := flow.Report{Address: at, Lost: true, Unbegun: true, To: "n"}
	jobs := dispatched(do(pass))
	require.Len(t, jobs, 1)
	require.Equal(t, []any{"n", 1, false}, []any{jobs[0].Carrier, jobs[0].Given, jobs[0].Again})
	require.Empty(t, do(pass), "it was heard before")
	require.Empty(t, do(flow.Report{Address: at, Lost: true}), "another member has it by now")
	require.Empty(t, dispatched(flow.OutstandingTo(s, "m")), "it is not this member's to carry out")

	jobs = dispatched(do(flow.Recover{Alive: []string{"n"}, Anew: true}))
	require.Len(t, jobs, 1, "who gave it may have died before the carrier got it")
	require.Equal(t, []any{"n", 1}, []any{jobs[0].Carrier, jobs[0].Given}, "it is the same giving: who has the job goes on with it")

	require.Empty(t, do(flow.Recover{Alive: []string{"n"}}))
	jobs = dispatched(do(flow.Recover{}))
	require.Equal(t, []any{"m", 2, 0}, []any{jobs[0].Carrier, jobs[0].Given, jobs[0].Deliveries})
	do(flow.Report{Address: at, Output: []byte(`1`)})
	require.Equal(t, flow.TaskCompleted, s.Status)
}

func TestAJobUnknownToItsLiveCarrierIsReturnedOnce(t *testing.T) {
	s := flow.NewState("t", flowtest.Plan(t, `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"}}}`))
	do := func(member string, c flow.Command) []flow.Job {
		d, err := flow.Decide(s, c, flow.Env{Now: 1_000, Member: member})
		require.NoError(t, err)
		return dispatched(d.Effects)
	}
	do("m", flow.Start{Version: "v"})
	asked := do("n", flow.Recover{Alive: []string{"m"}, Anew: true})
	require.Len(t, asked, 1)
	require.Equal(t, []any{"m", 0}, []any{asked[0].Carrier, asked[0].Given}, "it is the same giving: who knows the job goes on with it")
	require.Empty(t, do("n", flow.Recover{Alive: []string{"m"}}), "who has asked does not ask again at once")

	unknown := flow.Report{Address: asked[0].Address, Lost: true, Unbegun: true, Given: asked[0].Given}
	again := do("n", unknown)
	require.Len(t, again, 1)
	require.Equal(t, []any{"n", 1, 0}, []any{again[0].Carrier, again[0].Given, again[0].Deliveries}, "nothing was lost")
	require.Empty(t, do("n", unknown), "that was about the carrier before")
}

func TestAPassedJobIsWithdrawnWhereItIsCarriedOut(t *testing.T) {
	s, do := carried(t)
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	do(flow.Report{Address: at, Lost: true, Unbegun: true, To: "n"})
	withdrawn := do(flow.Cancel{Force: true})
	require.Contains(t, withdrawn, flow.Withdraw{Address: at, Carrier: "n", Given: 1})
	require.Equal(t, flow.TaskCanceled, s.Status)
}

func TestInquireRejectsObsoleteDeliveries(t *testing.T) {
	s, do := carried(t)
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	inquire := func(carrier string, given int) error {
		d, err := flow.Decide(s, flow.Inquire{Address: at, Carrier: carrier, Given: given}, flow.Env{Now: 1_000, Member: "o"})
		require.Empty(t, d.Events, "it changes nothing")
		return err
	}
	require.NoError(t, inquire("m", 0))
	require.Equal(t, flow.ErrOver, inquire("n", 0))
	do(flow.Report{Address: at, Lost: true, Unbegun: true, To: "n"})
	require.NoError(t, inquire("n", 1))
	require.Equal(t, flow.ErrOver, inquire("n", 0), "that was another time")
	require.Equal(t, flow.ErrOver, inquire("m", 0))
	do(flow.Cancel{Force: true})
	require.Equal(t, flow.ErrOver, inquire("n", 1))
}
