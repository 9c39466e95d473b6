package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// slack is the number of events by which a decision may exceed its limit, because an end and its
// consequences stay together.
const slack = 4

func dagOf(n int, node string) string {
	var text strings.Builder
	text.WriteString("mode: dag\nnodes:\n")
	for i := range n {
		fmt.Fprintf(&text, "  n%05d: %s\n", i, node)
	}
	return text.String()
}

// TestEveryDecisionIsBounded runs commands that affect very many units or nodes at once.
func TestEveryDecisionIsBounded(t *testing.T) {
	const many = 2_500
	list := json.RawMessage(`{"list":` + listOfNumbers(many) + `}`)
	none := func(int) bool { return false }
	for name, tt := range map[string]struct {
		definition string
		play       func(b *bench)
	}{
		"a signal that ends very many waits": {dagOf(many, "{kind: wait_event, params: {signal_key: go}}"), func(b *bench) {
			b.do(flow.Signal{Key: "go", Value: json.RawMessage(`true`)})
		}},
		"waits that were left when the member was gone": {dagOf(many, "{kind: approval, params: {approval_key: go}}"), func(b *bench) {
			d, err := flow.Decide(b.state, flow.Signal{Key: "go", Value: json.RawMessage(`1`)}, b.env)
			require.NoError(b.t, err)
			require.NotNil(b.t, d.More)
			b.env.Member = "other"
			b.do(flow.Recover{Since: b.env.Now})
		}},
		"taking over what another member carried": {dagOf(10, "{service: s, each: {items: $run.list}}"), func(b *bench) {
			b.jobs, b.env.Member = nil, "other"
			b.do(flow.Recover{Since: b.env.Now})
			b.do(flow.Recover{Since: b.env.Now})
			b.work(none)
		}},
		"leaving, with everything begun": {dagOf(2, "{service: s, each: {items: $run.list}}"), func(b *bench) {
			// only an attempt that was returned twice needs a Begin
			for _, b.env.Member = range []string{"one", "other"} {
				b.jobs = nil
				b.do(flow.Recover{Since: b.env.Now})
			}
			for i := range b.jobs {
				if j := &b.jobs[i]; j.Again {
					b.do(flow.Begin{j.Address, b.env.Member})
				}
			}
			b.jobs = nil
			b.do(flow.Leave{})
			b.work(none)
		}},
		"a queue whose pollers could not be heard": {dagOf(2, "{service: s, route: queue, each: {items: $run.list}}"), func(b *bench) {
			for _, j := range b.jobs {
				b.do(flow.Claim{Address: j.Address, Worker: "w", Token: "t", Until: b.env.Now + 10})
			}
			b.env.Now += 5
			b.do(flow.Recover{Since: b.env.Now, Visibility: 100_000})
			b.work(none)
		}},
		"retries that are all due at once": {dagOf(1,
			"{service: s, each: {items: $run.list}, retry: {max_attempts: 2, delay: 1s}}"), func(b *bench) {
			jobs := b.jobs
			b.jobs = nil
			b.do(flow.Pause{})
			for _, j := range jobs {
				b.do(flow.Report{Address: j.Address, Error: "once"})
			}
			b.env.Now += 1_000
			b.do(flow.Resume{})
			b.work(none)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{t: t, state: flow.NewState("t", flowtest.Plan(t, tt.definition)), env: flow.Env{Now: epoch, Member: "m"}}
			b.do(flow.Start{Params: list})
			tt.play(b)
			require.LessOrEqual(t, b.most, flow.DefaultLimits.Events+slack)
			require.Equal(t, flow.TaskCompleted, b.state.Status)
		})
	}
}
