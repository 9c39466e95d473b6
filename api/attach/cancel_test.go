package attach_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

// listOf returns a flow that calls the service "double" for each element of a list.
func listOf(execType string) string {
	return fmt.Sprintf(`{"start":"a","nodes":{"a":{"kind":"foreach","exec_type":%q,"service":"double",`+
		`"parallel_mode":"concurrent","prep":{"input_key":"$params.list"},"post":{"output_key":"out"}}}}`, execType)
}

func TestAGentleCancelStartsNoWaitingUnitOverAnyTransport(t *testing.T) {
	for name, transport := range map[string]struct {
		execType string
		worker   worker.Config
	}{
		"push":   {"push", worker.Config{Push: true, URL: "http://127.0.0.1:0"}},
		"pull":   {"queue", worker.Config{Pull: true}},
		"attach": {"remote", worker.Config{Attach: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, troupe.Config{Calls: 1})
			var began atomic.Int32
			at, finish := make(chan struct{}, 10), make(chan struct{})
			transport.worker.ID, transport.worker.Concurrency = "w", 1
			s.runWorker(transport.worker, map[string]worker.Handler{
				"double": func(context.Context, worker.Job) (any, error) {
					began.Add(1)
					at <- struct{}{}
					<-finish
					return 2, nil
				},
			})
			require.Eventually(t, func() bool { return s.knownWorkers()["w"] != "" }, patience, time.Millisecond)
			s.publish("list", listOf(transport.execType))
			task := s.start("list", map[string]any{"list": []int{1, 2, 3, 4, 5}})
			<-at
			require.NoError(t, s.engine.Cancel(t.Context(), task, troupe.Gently))
			require.Eventually(t, func() bool { return s.countUnits(task)["canceled"] == 4 }, patience, time.Millisecond)
			close(finish)
			require.EqualValues(t, "canceled", s.end(task).Status)
			// A second task gets the worker's only slot after all jobs dispatched before.
			after := s.start("list", map[string]any{"list": []int{6}})
			require.EqualValues(t, "completed", s.end(after).Status)
			require.EqualValues(t, 2, began.Load(), "one unit of the canceled task and the one after it")
		})
	}
}

func TestAGentleCancelEndsATaskThatNoWorkerHasBegun(t *testing.T) {
	for _, execType := range []string{"queue"} {
		t.Run(execType, func(t *testing.T) {
			s := open(t, troupe.Config{})
			s.attach(worker.Config{Concurrency: 1}, map[string]worker.Handler{"other": double})
			s.listed(1)
			s.publish("list", listOf(execType))
			task := s.start("list", map[string]any{"list": []int{1, 2, 3}})
			require.NoError(t, s.engine.Cancel(t.Context(), task, troupe.Gently))
			require.EqualValues(t, "canceled", s.end(task).Status)
		})
	}
}

// countUnits returns how many units of the step "a" of a task are in each state.
func (s *stage) countUnits(task string) map[string]int {
	resp, err := http.Get(s.url + "/v1/tasks/" + task + "/units/states?step=a")
	require.NoError(s, err)
	defer resp.Body.Close()
	var answer wire.UnitStates
	require.NoError(s, json.NewDecoder(resp.Body).Decode(&answer))
	found := map[string]int{}
	for _, run := range answer.Runs {
		found[run.State] += run.Count
	}
	return found
}
