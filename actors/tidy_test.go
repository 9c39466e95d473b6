package actors_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
)

func TestAStepOfManyUnitsAsksWhichAlarmsAreIdle(t *testing.T) {
	var asked, answered atomic.Int64
	cfg := withFunc(increment)
	cfg.Store = model.New(model.Options{})
	cfg.Host.Probe = func(kind string, message any) {
		switch text := fmt.Sprintf("%T", message); {
		case text == "actors.idleAlarms" && kind == "task":
			asked.Add(1)
		case text == "actors.idleAlarms":
			answered.Add(1)
		}
	}
	th := start(t, cfg)
	list, err := json.Marshal(make([]int, 6_000))
	require.NoError(t, err)
	version := th.publish(t,
		`{"start":"a","nodes":{"a":{"kind":"foreach","exec_type":"local_func","func":"f","timeout_ms":3600000,"prep":{"input_key":"$params.list"}}}}`)
	view := th.run(t, version, fmt.Sprintf(`{"list":%s}`, list))
	require.Equal(t, flow.TaskCompleted, view.State.Status)
	require.Positive(t, asked.Load())
	require.Positive(t, answered.Load())
	require.Less(t, asked.Load(), int64(20), "each time there are twice as many")
}
