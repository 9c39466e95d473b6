package actors

import (
	"container/heap"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestIdleAlarmsDoNotFillMemory(t *testing.T) {
	d, err := definition.Parse([]byte(`{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f","timeout_ms":60000}}}`))
	require.NoError(t, err)
	plan, problems := compile.Definition(d, flow.DefaultLimits)
	require.NoError(t, problems.Err())
	k := &task{state: flow.NewState("t", plan)}
	decision, err := flow.Decide(k.state, flow.Start{}, flow.Env{Now: 1})
	require.NoError(t, err)
	var real flow.Alarm
	for _, e := range decision.Effects {
		if a, ok := e.(flow.Alarm); ok {
			real = a
			heap.Push(&k.alarms, a)
		}
	}
	require.Len(t, k.alarms, 1)
	for visit := range 100_000 {
		old := real
		old.Visit, old.At = visit+2, int64(visit)
		heap.Push(&k.alarms, old)
		if k.hasManyAlarms() {
			k.dropAlarms(k.findIdleAlarms(k.alarms))
		}
		require.LessOrEqual(t, len(k.alarms), 2*manyAlarms)
	}
	require.Contains(t, k.alarms, real)
}

func TestIdleAlarmsOfAStepAreRemovedToo(t *testing.T) {
	s := &step{}
	k := &task{loadState: loadState{loading: true}}
	for unit := range manyAlarms {
		heap.Push(&s.alarms, flow.Alarm{At: int64(unit), Kind: flow.AlarmAttempt})
	}
	require.True(t, s.hasManyAlarms())
	s.dropAlarms(k.findIdleAlarms(s.alarms))
	require.Len(t, s.alarms, manyAlarms, "a task that does not know its state knows nothing of alarms")
	require.False(t, s.hasManyAlarms(), "it is not asked about the same ones again")
}
