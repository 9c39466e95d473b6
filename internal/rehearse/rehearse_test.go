package rehearse_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/examples/flows"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/rehearse"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// answers returns answers by service or node from a table; all other calls return their input.
func answers(table map[string]rehearse.Answer) func() rehearse.Answerer {
	return func() rehearse.Answerer {
		return func(c *rehearse.Call) rehearse.Answer {
			for _, name := range []string{c.Name, c.Step(), c.Service()} {
				if a, ok := table[name]; ok {
					return a
				}
			}
			return rehearse.Answer{Output: c.Input}
		}
	}
}

func names(s *rehearse.Story) (all []string) {
	for _, c := range s.Calls {
		all = append(all, c.Name)
	}
	return all
}

func TestAFlowOfThreeWeeksRunsToItsEnd(t *testing.T) {
	p := &rehearse.Play{Plan: flowtest.Plan(t, `
start: wait
nodes:
  wait: {kind: timer, params: {delay_ms: 1814400000}}
  pay: {service: pay, retry: {max_attempts: 4, delay: 1m}, prep: {input_key: $params.amount}, post: {output_key: paid}}
edges: [{from: wait, action: default, to: pay}]`), Params: json.RawMessage(`{"amount":12}`)}
	s := rehearse.Run(p)
	require.NoError(t, s.Err)
	require.Equal(t, flow.TaskCompleted, s.State.Status)
	require.Equal(t, 21*24*time.Hour, s.Took)
	require.Equal(t, []string{"pay"}, names(s))
	require.JSONEq(t, `{"paid":12}`, string(s.State.Root.SharedJSON()))
}

func TestEachAttemptIsACallAndRetriesTakeTheirTime(t *testing.T) {
	p := &rehearse.Play{Plan: flowtest.Plan(t,
		"start: pay\non_error: fail\nnodes: {pay: {service: pay, retry: {max_attempts: 3, delay: 1m}}}"),
		Answers: answers(map[string]rehearse.Answer{"pay": {Error: "declined", After: time.Second}})}
	s := rehearse.Run(p)
	require.Equal(t, flow.TaskFailed, s.State.Status)
	require.Equal(t, []string{"pay", "pay attempt 2", "pay attempt 3"}, names(s))
	require.Equal(t, 2*time.Minute+3*time.Second, s.Took)
}

func TestWaitingStepsAreAnswered(t *testing.T) {
	plan := flowtest.Plan(t, `
start: ask
nodes:
  ask: {kind: approval, params: {approval_key: $shared.decision}, timeout_ms: 86400000}
  pay: {service: pay}
  refuse: {service: refuse}
edges:
- {from: ask, action: approved, to: pay}
- {from: ask, action: rejected, to: refuse}`)
	for name, tt := range map[string]struct {
		act   rehearse.Act
		calls []string
		took  time.Duration
	}{
		"when it waits": {rehearse.Act{Waiting: "ask", Kind: rehearse.ActApprove,
			Target: "ask", At: time.Hour}, []string{"pay"}, time.Hour},
		"when its key is waited": {rehearse.Act{Waiting: "decision", Kind: rehearse.ActAnswer,
			Target: "decision", Value: json.RawMessage("false")}, []string{"refuse"}, 0},
		"at a time": {rehearse.Act{Kind: rehearse.ActReject, Target: "ask",
			At: 2 * time.Hour}, []string{"refuse"}, 2 * time.Hour},
		"by a signal": {rehearse.Act{Kind: rehearse.ActSignal, Target: "decision",
			Value: json.RawMessage("true"), At: time.Minute}, []string{"pay"}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			tt.act.ID = name
			s := rehearse.Run(&rehearse.Play{Plan: plan, Acts: []rehearse.Act{tt.act}})
			require.NoError(t, s.Err)
			require.Equal(t, tt.calls, names(s))
			require.Equal(t, tt.took, s.Took)
			require.Len(t, s.Done, 1)
			require.NoError(t, s.Done[0].Err)
		})
	}
}

func TestTaskWithoutFurtherEventsKeepsWaiting(t *testing.T) {
	s := rehearse.Run(&rehearse.Play{Plan: flowtest.Plan(t, "start: w\nnodes: {w: {kind: wait_event, params: {signal_key: $shared.k}}}")})
	require.NoError(t, s.Err)
	require.Equal(t, flow.TaskRunning, s.State.Status)
	lines := s.Tell()
	require.Contains(t, lines[len(lines)-1].Text, "a signal must set k (still waiting)")
}

func TestEndlessLoopIsAborted(t *testing.T) {
	s := rehearse.Run(&rehearse.Play{Plan: flowtest.Plan(t,
		"start: a\nnodes: {a: {service: s}}\nedges: [{from: a, action: default, to: a}]")})
	require.ErrorContains(t, s.Err, "the task has not ended after 50000 decisions")
}

const fragile = `
nodes:
  a: {service: a}
  b: {service: b}
  c: {service: c, depends_on: [b], route: queue}
  d: {service: d, depends_on: [c]}`

func TestEveryKindOfFaultHappens(t *testing.T) {
	plan := flowtest.Plan(t, fragile)
	for _, f := range []rehearse.Fault{
		{Kind: rehearse.FaultLate, At: "a", By: time.Hour}, {Kind: rehearse.FaultTwice, At: "b",
			By: time.Second}, {Kind: rehearse.FaultCrash, At: "a"},
		{Kind: rehearse.FaultCrash, At: "c"}, {Kind: rehearse.FaultLost, At: "b"},
		{Kind: rehearse.FaultLost, At: "c"}, {Kind: rehearse.FaultRestart, At: "c"},
		{Kind: rehearse.FaultRestart, At: "a"}, {Kind: rehearse.FaultError, At: "d"}, {Kind: rehearse.FaultDown, At: "a"},
	} {
		t.Run(string(f.Kind)+" "+f.At, func(t *testing.T) {
			s := rehearse.Under(&rehearse.Play{Plan: plan}, rehearse.Schedule{f})
			require.NoError(t, s.Err)
			require.Equal(t, rehearse.Schedule{f}, s.Schedule())
			want := flow.TaskCompleted
			if f.Kind == rehearse.FaultError || f.Kind == rehearse.FaultDown {
				want = flow.TaskFailed
			}
			require.Equal(t, want, s.State.Status, "%v", s.Tell())
		})
	}
}

func TestRedeliveredCallIsOneCall(t *testing.T) {
	asked := 0
	p := &rehearse.Play{Plan: flowtest.Plan(t, fragile), Answers: func() rehearse.Answerer {
		return func(_ *rehearse.Call) rehearse.Answer {
			asked++
			return rehearse.Answer{Output: json.RawMessage(fmt.Sprint(asked))}
		}
	}}
	s := rehearse.Under(p, rehearse.Schedule{{Kind: rehearse.FaultLost, At: "c"}, {Kind: rehearse.FaultRestart, At: "b"}})
	require.Equal(t, flow.TaskCompleted, s.State.Status, "%v", s.Tell())
	require.Equal(t, 4, asked)
	require.Len(t, s.Calls, 4)
	deliveries := map[string]int{}
	for _, c := range s.Calls {
		deliveries[c.Name] = c.Deliveries
	}
	require.Equal(t, 2, deliveries["c"])
	require.Equal(t, 2, deliveries["b"])
}

func TestASeedGivesTheSameStoryEachTime(t *testing.T) {
	p := &rehearse.Play{Plan: flowtest.Plan(t, fragile), Kinds: rehearse.Kinds{Order: true,
		Repeat: true, Crash: true, Timeouts: true, Errors: true}}
	different := map[string]bool{}
	for seed := range uint64(200) {
		one, other := rehearse.Seed(p, seed), rehearse.Seed(p, seed)
		require.Equal(t, one.Tell(), other.Tell())
		require.Equal(t, one.Tell(), rehearse.Under(p, one.Schedule()).Tell(), "its schedule gives the same story as the seed")
		different[fmt.Sprint(one.Schedule())] = true
	}
	require.Greater(t, len(different), 100)
}

type dice struct{ *rand.Rand }

func (d dice) Pick(_ string, n int) int { return d.IntN(n) }

// TestHarmlessFaultsChangeNoResult plays random flows. Their results must not depend on the order
// of events, on crashes or on repetitions.
func TestHarmlessFaultsChangeNoResult(t *testing.T) {
	struck := 0
	for seed := range uint64(600) {
		text := flowtest.RandomDag(dice{rand.New(rand.NewPCG(seed, 1))}, 0)
		b, err := json.Marshal(text)
		require.NoError(t, err)
		p := &rehearse.Play{Plan: flowtest.Plan(t, string(b)), Kinds: rehearse.Harmless, Limits: flow.Limits{Steps: 200}}
		calm := rehearse.Run(p)
		if !calm.State.Status.Ended() {
			continue
		}
		disturbed := rehearse.Seed(p, seed)
		struck += len(disturbed.Struck)
		require.Equal(t, calm.State.Status, disturbed.State.Status, "seed %d: %s\n%v\n%v", seed, b, disturbed.Tell(), calm.Tell())
	}
	require.Greater(t, struck, 100)
}

func TestFailureIsShrunkToTheNecessaryFaults(t *testing.T) {
	p := &rehearse.Play{Plan: flowtest.Plan(t, fragile), Kinds: rehearse.Harmless}
	fails := func(s *rehearse.Story) bool { // a race: a is expected to complete before d begins
		for _, c := range s.Calls {
			if c.Step() == "a" {
				for _, d := range s.Calls {
					if d.Step() == "d" && (!c.Over || c.EndedAt > d.BeganAt) {
						return true
					}
				}
			}
		}
		return false
	}
	require.False(t, fails(rehearse.Run(p)))
	found := 0
	for seed := range uint64(1000) {
		s := rehearse.Seed(p, seed)
		if !fails(s) {
			continue
		}
		found++
		small := rehearse.Shrink(p, s, fails)
		require.Len(t, small.Struck, 1, "%v", small.Schedule())
		if found == 20 {
			return
		}
	}
	require.Fail(t, "the race was found too seldom", "%d times", found)
}

// TestRaceWithADelayOfDaysIsFound expects one result before another that comes three days later,
// after some retries.
func TestRaceWithADelayOfDaysIsFound(t *testing.T) {
	p := &rehearse.Play{Kinds: rehearse.Harmless, Plan: flowtest.Plan(t, `
nodes:
  a: {service: a}
  wait: {kind: timer, params: {delay_ms: 259200000}}
  b: {service: b, depends_on: [wait], retry: {max_attempts: 3, delay: 1s}}
  c: {service: c, depends_on: [b]}`),
		Answers: func() rehearse.Answerer {
			return func(c *rehearse.Call) rehearse.Answer {
				if c.Step() == "b" && c.Attempt < 3 {
					return rehearse.Answer{Error: "not yet"}
				}
				return rehearse.Answer{Output: json.RawMessage("1")}
			}
		}}
	calm := rehearse.Run(p)
	require.Equal(t, 72*time.Hour+2*time.Second, calm.Took)
	p.Lasts = calm.Took
	found := 0
	for seed := range uint64(1000) {
		s := rehearse.Seed(p, seed)
		ends := map[string]int{}
		for _, c := range s.Calls {
			ends[c.Step()] = c.EndedAt
		}
		if ends["a"] > ends["c"] {
			found++
		}
	}
	require.Greater(t, found, 5)
}

func TestCoverageCountsNodesAndEdges(t *testing.T) {
	plan := flowtest.Plan(t, `
start: ask
nodes:
  ask: {kind: approval, params: {approval_key: $shared.decision}}
  pay: {service: pay}
  refuse: {service: refuse}
edges:
- {from: ask, action: approved, to: pay}
- {from: ask, action: rejected, to: refuse}
- {from: pay, action: error, to: refuse}`)
	c := rehearse.NewCoverage(plan)
	c.Add(rehearse.Run(&rehearse.Play{Plan: plan, Acts: []rehearse.Act{{ID: "a", Waiting: "ask", Kind: rehearse.ActApprove, Target: "ask"}},
		Answers: answers(map[string]rehearse.Answer{"pay": {Error: "no"}})}))
	nodes, nodesHit, edges, edgesHit := c.Totals()
	require.Equal(t, []int{3, 3, 3, 2}, []int{nodes, nodesHit, edges, edgesHit})
	require.Equal(t, "edge rejected of ask", c.Missed()[0].Text())
}

func TestDurationsAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "90s": 90 * time.Second,
		"3w": 21 * 24 * time.Hour, "2d12h": 60 * time.Hour, "1.5s": 1500 * time.Millisecond,
		"250ms": 250 * time.Millisecond} {
		d, err := rehearse.ParseSpan(text)
		require.NoError(t, err)
		require.Equal(t, want, d, text)
	}
	for _, text := range []string{"", "2", "d", "2x", "-1s", "1000000w", "2d 3"} {
		_, err := rehearse.ParseSpan(text)
		require.Error(t, err, text)
	}
	require.Equal(t, "2d12h30m", rehearse.Span(60*time.Hour+30*time.Minute))
}

// TestTheExamplesArePlayedUnderAllFaults plays every example flow. Every rehearsal has to end, and
// a schedule has to give the same story as its seed.
func TestTheExamplesArePlayedUnderAllFaults(t *testing.T) {
	all, err := flows.Expectations()
	require.NoError(t, err)
	require.Greater(t, len(all), 20)
	kinds := rehearse.Kinds{Order: true, Repeat: true, Crash: true, Timeouts: true, Errors: true}
	for i, e := range all {
		t.Run(fmt.Sprint(i, " ", e.File), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../examples/flows", e.File))
			require.NoError(t, err)
			plan, _ := compile.Text(text, flow.Limits{})
			require.NotNil(t, plan)
			p := &rehearse.Play{Plan: plan, Kinds: kinds, Params: e.Params,
				Acts: []rehearse.Act{{ID: "retry", Kind: rehearse.ActRetry, At: 24 * time.Hour}}}
			if len(e.Input) > 0 {
				p.Params = e.Input
			}
			for _, s := range e.Signals {
				p.Acts = append(p.Acts, rehearse.Act{ID: s.Key, Kind: rehearse.ActSignal,
					Target: s.Key, Value: s.Value, At: time.Duration(s.AfterMS) * time.Millisecond})
			}
			for _, c := range e.Complete {
				p.Acts = append(p.Acts, rehearse.Act{ID: fmt.Sprint(c.Step, c.Unit),
					Kind: rehearse.ActComplete, Waiting: c.Step, Target: c.Step, Unit: c.Unit,
					Value: c.Output})
			}
			for seed := range uint64(20) {
				s := rehearse.Seed(p, seed)
				require.NoError(t, s.Err)
				again := rehearse.Under(p, s.Schedule())
				require.Equal(t, s.Tell(), again.Tell(), "%v", s.Schedule())
				rehearse.NewCoverage(plan).Add(s)
			}
		})
	}
}
