package flow_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestAnyNumberOfMillisecondsBecomesADuration(t *testing.T) {
	century := 100 * 365 * 24 * time.Hour
	for ms, want := range map[int64]time.Duration{
		0: 0, 1: time.Millisecond, -1: 0, math.MinInt64: 0,
		century.Milliseconds():     century,
		century.Milliseconds() + 1: century,
		10_000_000_000_000:         century,
		flow.MaxDelay:              century,
		math.MaxInt64:              century,
	} {
		require.Equal(t, want, flow.Milliseconds(ms), "%d ms", ms)
	}
}

func TestABackoffIsNeverNegative(t *testing.T) {
	for _, r := range []flow.Retry{{}, {WaitMS: 1}, {WaitMS: 0, MaxWaitMS: 5},
		{WaitMS: flow.MaxDelay}, {WaitMS: 2 * flow.MaxDelay, Jitter: 1},
		{WaitMS: 7, MaxWaitMS: flow.MaxDelay, Jitter: 0.5}} {
		r.Exponential = true
		for _, attempt := range []int{1, 2, 60, 1024, 1025, 1100, math.MaxInt32} {
			wait := r.Wait("t", flow.Address{Attempt: attempt})
			require.True(t, wait >= 0 && wait <= flow.MaxDelay, "%+v waits %d ms before attempt %d", r, wait, attempt+1)
			if r.WaitMS == 0 {
				require.Zero(t, wait, "%+v before attempt %d", r, attempt+1)
			}
		}
	}
}

func FuzzTimes(f *testing.F) {
	for _, ms := range []int64{0, 1, -1, 60_000, 10_000_000_000_000, flow.MaxDelay, flow.MaxDelay + 1, math.MaxInt64, math.MinInt64} {
		for _, kind := range []uint8{0, 1, 2, 3} {
			f.Add(ms, ms, 2.0, uint16(1), kind)
			f.Add(int64(0), ms, 1e300, uint16(1100), kind)
		}
	}
	f.Fuzz(func(t *testing.T, ms, other int64, seconds float64, attempts uint16, kind uint8) {
		for _, text := range timedFlows(ms, other, seconds, attempts, kind) {
			plan, _ := compile.Text([]byte(text), flow.Limits{})
			if plan == nil {
				continue // rejected
			}
			timesAreAhead(t, plan, ms)
		}
	})
}

// timedFlows returns flows with the given durations in all places that accept one.
func timedFlows(ms, other int64, seconds float64, attempts uint16, kind uint8) []string {
	route := []string{"push", "queue", "direct", "push"}[kind%4]
	work := `"service":"s",`
	if route == "direct" {
		work = ""
	}
	claims := ""
	if route == "queue" {
		claims = fmt.Sprintf(`"heartbeat_timeout":%q,"start_timeout":%q,`, time.Duration(ms), time.Duration(other))
	}
	backoff := []string{"fixed", "exponential"}[kind/4%2]
	return []string{
		fmt.Sprintf(
			`{"start":"a","timeout_ms":%d,"edges":[{"from":"a","action":"default","to":"b"},{"from":"b","action":"default","to":"c"}],"nodes":{
			"a":{"exec_type":"queue","service":"s","timeout_ms":%d,"retry":{"max_attempts":%d,"delay":%q},"visibility_ms":%d},
			"b":{"kind":"wait_event","timeout_ms":%d,"params":{"signal_key":"$shared.go","timeout_ms":%g}},
			"c":{"kind":"timer","params":{"delay_ms":%g}}}}`, ms, other, attempts, time.Duration(ms), other, ms, seconds, seconds),
		fmt.Sprintf(`{"mode":"dag","timeout":%q,"nodes":{
			"a":{%s%s"route":%q,"timeout_ms":%d,"start_delay":%q,"retry":{"max_attempts":%d,"delay":%q,"backoff":%q,"max_delay":%q}},
			"b":{"kind":"branch","timeout_ms":%d,"flow":{"start":"x","nodes":{"x":{"service":"s","timeout_ms":%d}}}}}}`,
			time.Duration(ms), work, claims, route, ms, time.Duration(other), attempts,
			time.Duration(ms), backoff, time.Duration(other), other, ms),
		fmt.Sprintf(
			`{"mode":"dag","profile":"pgflow","nodes":{"a":{%s"route":%q,"timeout":%g,"start_delay":%g,"retry":{"max_attempts":%d,"delay":%g,"backoff":%q}}}}`,
			work, route, seconds, seconds/2, attempts, seconds, backoff),
	}
}

// timesAreAhead runs a flow in which everything fails, and sometimes advances to the time of the
// next alarm.
func timesAreAhead(t *testing.T, plan *flow.Plan, ms int64) {
	s, env := flow.NewState("t", plan), flow.Env{Now: epoch, Member: "m"}
	alarms, jobs := []flow.Alarm(nil), []flow.Job(nil)
	do := func(c flow.Command) {
		for c != nil {
			d, err := flow.Decide(s, c, env)
			if err != nil {
				return
			}
			for _, e := range d.Effects {
				switch e := e.(type) {
				case flow.Alarm:
					require.GreaterOrEqual(t, e.At, env.Now, "an alarm in the past: %s", effectText(e))
					require.LessOrEqual(t, e.At, env.Now+2*flow.MaxDelay, "an alarm out of reach: %s", effectText(e))
					alarms = append(alarms, e)
				case flow.Dispatch:
					require.GreaterOrEqual(t, flow.Milliseconds(e.Job.TimeoutMS), time.Duration(0))
					jobs = append(jobs, e.Job)
				}
			}
			c = d.More
		}
	}
	do(flow.Start{})
	for i := 0; i < 12 && !s.Status.Ended(); i++ {
		switch {
		case len(jobs) > 0 && i%3 != 2:
			do(flow.Claim{Address: jobs[0].Address, Worker: "w", Token: "t", Until: env.Now + 1_000})
			do(flow.Extend{Address: jobs[0].Address, Worker: "w", MS: ms})
			do(flow.Report{Address: jobs[0].Address, Error: "boom"})
			jobs = jobs[1:]
		case len(alarms) > 0:
			env.Now = max(env.Now, alarms[0].At)
			do(flow.Ring{alarms[0]})
			alarms = alarms[1:]
		}
	}
}
