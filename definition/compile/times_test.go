package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// TestAWrittenZeroOverridesTheProfile distinguishes an absent field from an explicit zero.
func TestAWrittenZeroOverridesTheProfile(t *testing.T) {
	type times struct{ timeout, wait int64 }
	for definition, want := range map[string]times{
		"profile: ork\nnodes: {a: {service: s}}":                                                         {3_600_000, 0},
		"profile: ork\nnodes: {a: {service: s, timeout: 0}}":                                             {0, 0},
		"profile: ork\nnodes: {a: {service: s, timeout: 0s}}":                                            {0, 0},
		"profile: ork\nnodes: {a: {service: s, timeout_ms: 0}}":                                          {0, 0},
		"profile: ork\ndefaults: {timeout: 0s}\nnodes: {a: {service: s}}":                                {0, 0},
		"profile: ork\ndefaults: {timeout: 0s}\nnodes: {a: {service: s, timeout: 5}}":                    {5_000, 0},
		"mode: dag\ndefaults: {timeout: 3s}\nnodes: {a: {service: s, timeout: 0s}}":                      {0, 0},
		"profile: pgflow\nnodes: {a: {}}":                                                                {60_000, 10_000},
		"profile: pgflow\nnodes: {a: {timeout: 0, retry: {delay: 0s}}}":                                  {0, 0},
		"profile: pgflow\ndefaults: {retry: {delay: 0}}\nnodes: {a: {retry: {jitter: 0.5}}}":             {60_000, 0},
		"mode: dag\nnodes: {a: {service: s, retry: {max_attempts: 1, backoff: exponential}}}":            {0, 1_000},
		"mode: dag\nnodes: {a: {service: s, retry: {max_attempts: 1, delay: 0s, backoff: exponential}}}": {0, 0},
	} {
		plan, problems := compile.Text([]byte(definition), flow.Limits{})
		require.NoError(t, problems.Err(), definition)
		n := plan.Root.Nodes["a"]
		require.Equal(t, want, times{n.TimeoutMS, n.Retry.WaitMS}, definition)
	}
}

// TestTimesOfAQueueAreIndependentOfItsNotation configures a queue in three notations.
func TestTimesOfAQueueAreIndependentOfItsNotation(t *testing.T) {
	const times = "service: s, start_timeout: 5s, heartbeat_timeout: 7s"
	for _, definition := range []string{
		"mode: dag\nnodes: {a: {route: queue, " + times + "}}",
		"mode: dag\ndefaults: {route: queue}\nnodes: {a: {" + times + "}}",
		"mode: dag\ndefaults: {exec_type: queue}\nnodes: {a: {" + times + "}}",
	} {
		e := flowtest.Plan(t, definition).Root.Nodes["a"].Exec
		require.Equal(t, []int64{5_000, 7_000}, []int64{e.StartMS, e.HeartbeatMS}, definition)
	}
}
