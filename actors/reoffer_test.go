package actors

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/flowtest"
	"github.com/troupe-engine/troupe/persistence/model"
)

// A claim is refused, and before the answer is there the job is offered anew, by whoever has its task now or because somebody has
// returned it: nobody offers it again.
func TestAJobThatIsOfferedWhileItsClaimIsRefusedIsThereAfterwards(t *testing.T) {
	m, err := Start(t.Context(), Config{Store: model.New(model.Options{})})
	require.NoError(t, err)
	t.Cleanup(m.Kill)
	for name, why := range map[string]error{
		"somebody else had it":                flow.Errorf(flow.Conflict, "the job is claimed by another worker"),
		"whoever had its task did not answer": errAway,
	} {
		for _, offered := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, offered meanwhile: %v", name, offered), func(t *testing.T) {
				q, r := newQueue(m), &ref{key: jobKey{"task", flow.Address{Node: "a", Visit: 1, Attempt: 1}}, service: "x"}
				p := newPoller(engine.Poll{Services: []string{"x"}}, nil)
				p.take(r)
				q.claims[r.key] = nil
				if offered {
					q.offer(nil, r)
				}
				require.Empty(t, q.refs)
				q.answered(nil, claimAnswered{poller: p, ref: r, Outcome: engine.Outcome{Err: why}})
				require.Equal(t, offered, q.refs[r.key] != nil)
			})
		}
	}
}

// While the store does not answer, the time of a claim runs out that is not stored yet. Then its poller has nothing, and the job, which is
// offered anew, goes to the next one.
func TestAClaimThatIsOverBeforeItIsStoredIsRefused(t *testing.T) {
	state := flow.NewState("t", flowtest.Plan(t, `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"x"}}}`))
	decide := func(cmd flow.Command) flow.Decision {
		d, err := flow.Decide(state, cmd, flow.Env{Now: 1})
		require.NoError(t, err)
		return d
	}
	decide(flow.Start{})
	claim := flow.Claim{Address: flow.Address{Node: "a", Visit: 1, Attempt: 1}, Worker: "w", Token: "token", Until: 2}
	var told []answer
	p := &draft{}
	p.add(decide(claim), &command{cmd: claim, reply: func(a answer) { told = append(told, a) }}, answer{job: &flow.Job{}})
	p.answerEach(state)
	require.NotNil(t, told[0].job)

	decide(flow.GiveBack{Address: claim.Address, Token: claim.Token})
	p.answers[0].cmd.reply = func(a answer) { told = append(told, a) }
	p.answerEach(state)
	require.Nil(t, told[1].job)
	require.True(t, taken(told[1].err), "%v", told[1].err)
}
