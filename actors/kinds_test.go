package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
)

// kinds are polls for one service, with the jobs that they get from a store with three: one of flow
// a without labels, one with gpu and eu, and one of flow b.
var kinds = []struct {
	name string
	poll func(a, b string) engine.Poll
	want []string
}{
	{"no labels", func(_, _ string) engine.Poll { return engine.Poll{} }, []string{"plain", "other"}},
	{"too few labels", func(_, _ string) engine.Poll { return engine.Poll{Labels: []string{"gpu"}} }, []string{"plain", "other"}},
	{"all labels", func(_, _ string) engine.Poll {
		return engine.Poll{Labels: []string{"x", "gpu",
			"eu", "gpu"}}
	}, []string{"plain", "picky", "other"}},
	{"one flow", func(_, b string) engine.Poll { return engine.Poll{FlowID: b, Labels: []string{"gpu", "eu"}} }, []string{"other"}},
	{"the other flow", func(a, _ string) engine.Poll { return engine.Poll{FlowID: a} }, []string{"plain"}},
	{"no such flow", func(_, _ string) engine.Poll { return engine.Poll{FlowID: "none"} }, nil},
}

const twoJobs = `
nodes:
  plain: {service: x, route: queue}
  picky: {service: x, route: queue, labels: [gpu, eu]}
`

const otherJob = `
nodes:
  other: {service: x, route: queue}
`

// flows creates the flows a and b and returns their versions and ids.
func (th *harness) flows(t *testing.T) (versionA, versionB, a, b string) {
	versionA, versionB = th.publish(t, twoJobs), th.publish(t, otherJob)
	planA, err := th.reader.Plan(t.Context(), versionA)
	require.NoError(t, err)
	planB, err := th.reader.Plan(t.Context(), versionB)
	require.NoError(t, err)
	return versionA, versionB, planA.FlowID, planB.FlowID
}

func nodesOf(claimed []engine.Claimed) []string {
	var nodes []string
	for _, c := range claimed {
		nodes = append(nodes, c.Job.Node)
	}
	return nodes
}

func TestAPollerGetsMatchingJobsFromMemoryAndStore(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			th := start(t, actors.Config{IdleAfter: 20 * time.Millisecond})
			versionA, versionB, a, b := th.flows(t)
			ask := func(wait time.Duration, limit int) []string {
				p := k.poll(a, b)
				p.Worker, p.Services, p.Max, p.Wait = "w", []string{"x"}, limit, wait
				got, err := th.Poll(t.Context(), p)
				require.NoError(t, err)
				return nodesOf(got)
			}
			require.Empty(t, ask(0, 9)) // from now on there is a list for it
			th.begin(t, versionA, `{}`)
			th.begin(t, versionB, `{}`)
			require.ElementsMatch(t, k.want, ask(0, 9), "from memory")
			require.Empty(t, ask(0, 9))

			th.eventuallyEmpty(t)
			th = th.again(t, actors.Config{})
			th.begin(t, versionA, `{}`)
			th.begin(t, versionB, `{}`)
			require.ElementsMatch(t, k.want, ask(0, 9), "from the store")
		})
	}
}

func TestAWaitingPollGetsMatchingJobsOnly(t *testing.T) {
	th := start(t, actors.Config{})
	versionA, versionB, _, b := th.flows(t)
	got := make(chan []string, 2)
	wait := func(ctx context.Context, p engine.Poll, to chan []string) {
		p.Worker, p.Services, p.Wait = "w", []string{"x"}, patience
		claimed, _ := th.Poll(ctx, p)
		to <- nodesOf(claimed)
	}
	go wait(t.Context(), engine.Poll{FlowID: b}, got)
	go wait(t.Context(), engine.Poll{Labels: []string{"eu", "gpu"}, Max: 1}, got)
	without := make(chan []string, 1)
	ctx, leave := context.WithCancel(t.Context())
	go wait(ctx, engine.Poll{FlowID: "none"}, without)
	th.begin(t, versionA, `{}`) // the older jobs are for the poll without a flow
	th.begin(t, versionB, `{}`)
	all := append(<-got, <-got...)
	leave()
	require.Empty(t, <-without, "whoever wants another flow goes without")
	require.Contains(t, all, "other")
	require.Len(t, all, 2)
}
