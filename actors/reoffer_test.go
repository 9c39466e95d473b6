package actors

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors/forward"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
	"github.com/troupe-engine/troupe/internal/testing/model"
)

// A claim is refused, and before the answer arrives the job is offered again, by its current owner
// or because it was returned. No later offer follows.
func TestAJobOfferedDuringARefusedClaimIsAvailableAfterwards(t *testing.T) {
	m, err := Start(t.Context(), Config{Store: model.New(model.Options{})})
	require.NoError(t, err)
	t.Cleanup(m.Kill)
	for name, why := range map[string]error{
		"somebody else had it":                flow.Errorf(flow.Conflict, "the job is claimed by another worker"),
		"whoever had its task did not answer": forward.ErrOwnerUnreachable,
	} {
		for _, offered := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, offered meanwhile: %v", name, offered), func(t *testing.T) {
				q, r := newQueue(m), &queuedJob{key: engine.JobKey{Task: "task", At: flow.Address{Node: "a", Visit: 1, Attempt: 1}},
					service: "x"}
				p := newPoller(engine.Poll{Services: []string{"x"}}, nil)
				p.reserveJob(r)
				q.openClaims[r.key] = nil
				if offered {
					q.offerJob(nil, r)
				}
				require.Empty(t, q.refs)
				q.handleClaimAnswer(nil, claimAnswered{poller: p, ref: r, Outcome: engine.Outcome{Err: why}})
				require.Equal(t, offered, q.refs[r.key] != nil)
			})
		}
	}
}

// While the store does not answer, a claim expires before it is stored. Its poller gets nothing,
// and the job, which is offered again, goes to the next one.
func TestAClaimThatExpiresBeforeItIsStoredIsRefused(t *testing.T) {
	state := flow.NewState("t", flowtest.Plan(t, `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"x"}}}`))
	decide := func(cmd flow.Command) flow.Decision {
		d, err := flow.Decide(state, cmd, flow.Env{Now: 1})
		require.NoError(t, err)
		return d
	}
	decide(flow.Start{})
	claim := flow.Claim{Address: flow.Address{Node: "a", Visit: 1, Attempt: 1}, Worker: "w", Token: "token", Until: 2}
	var told []commandAnswer
	p := &journalDraft{}
	p.addDecision(decide(claim), &taskCommand{command: claim,
		reply: func(a commandAnswer) { told = append(told, a) }}, commandAnswer{job: &flow.Job{}})
	p.sendAnswers(state)
	require.NotNil(t, told[0].job)

	decide(flow.GiveBack{Address: claim.Address, Token: claim.Token})
	p.answers[0].cmd.reply = func(a commandAnswer) { told = append(told, a) }
	p.sendAnswers(state)
	require.Nil(t, told[1].job)
	require.True(t, engine.IsDelivered(told[1].err), "%v", told[1].err)
}
