package troupe

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// callJSON sends a request to a member and decodes its answer.
func callJSON(t *testing.T, e *Engine, method, path, body string, into any) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+e.cfg.Listen+path, bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into), string(text))
	return resp.StatusCode
}

func TestAnswersWaitForAStep(t *testing.T) {
	t.Parallel()
	e := serving(t, Config{Store: pgtest.DSN(t)})
	Handle(e, "price", func(context.Context, struct{}) (int, error) { return 7, nil })
	require.NoError(t, e.Publish(t.Context(), "graph", []byte(`{"start":"price","nodes":{
		"price":{"exec_type":"local_func","func":"price","post":{"output_key":"out"}},
		"pay":{"kind":"wait_event","params":{"signal_key":"paid"}}},
		"edges":[{"from":"price","action":"default","to":"pay"}]}`)))
	require.NoError(t, e.Publish(t.Context(), "dag", []byte(`{"nodes":{"price":{"exec_type":"local_func","func":"price"},
		"pay":{"kind":"wait_event","params":{"signal_key":"paid"},"depends_on":["price"]}}}`)))
	HandleFlow(e, "code", func(f *durable.Flow, _ struct{}) (int, error) {
		n, err := durable.Do(f, "price", func(context.Context) (int, error) { return 7, nil })
		if err != nil {
			return 0, err
		}
		paid, err := durable.Signal[int](f, "pay")
		return n + paid, err
	})
	_, err := e.Member(t.Context())
	require.NoError(t, err)
	for _, name := range []string{"graph", "dag", "code"} {
		t.Run(name, func(t *testing.T) {
			var started wire.StartResult
			status := callJSON(t, e, "POST", "/v1/tasks", `{"flow":"`+name+`","wait_ms":60000,"wait_until":"price"}`, &started)
			require.Equal(t, http.StatusCreated, status)
			require.NotNil(t, started.Step)
			require.Equal(t, "completed", started.Step.State)
			require.JSONEq(t, "7", string(started.Step.Output))
			require.Equal(t, name, started.Task.Mode)
			require.Equal(t, "running", started.Task.State, "it waits for a payment")

			var task wire.Task
			callJSON(t, e, "GET", "/v1/tasks/"+started.ID+"?wait_ms=60000&wait_until=price", "", &task)
			require.JSONEq(t, "7", string(task.Step.Output), "a step that has ended is there at once")
			task = wire.Task{}
			callJSON(t, e, "GET", "/v1/tasks/"+started.ID+"?wait_ms=1&wait_until=pay", "", &task)
			require.Nil(t, task.Step, "it has not ended in time")

			step, err := e.WaitForStep(t.Context(), started.ID, "price")
			require.NoError(t, err)
			require.JSONEq(t, "7", string(step.Output))

			ended := make(chan wire.Task, 1)
			go func() {
				var task wire.Task
				callJSON(t, e, "GET", "/v1/tasks/"+started.ID+"?wait_ms=60000&wait_until=pay", "", &task)
				ended <- task
			}()
			key := map[string]string{"code": "pay"}[name]
			if key == "" {
				key = "paid"
			}
			require.NoError(t, e.Signal(t.Context(), started.ID, key, json.RawMessage("5")))
			task = <-ended
			require.NotNil(t, task.Step)
			require.Equal(t, "completed", task.Step.State)
		})
	}
}

func TestAnswersWithAnEndedTaskHaveItsStep(t *testing.T) {
	t.Parallel()
	e := serving(t, Config{Store: pgtest.DSN(t)})
	require.NoError(t, e.Publish(t.Context(), "f", []byte(`{"start":"nap","nodes":{"nap":{"kind":"timer","params":{"delay_ms":5}}}}`)))
	for range 100 { // in some, the task ends between the end of the wait and the answer
		var started wire.StartResult
		callJSON(t, e, "POST", "/v1/tasks", `{"flow":"f","wait_ms":4,"wait_until":"nap"}`, &started)
		require.True(t, started.Step != nil || started.Task.EndedAt.IsZero())
		var task wire.Task
		for task.EndedAt.IsZero() {
			task = wire.Task{}
			callJSON(t, e, "GET", "/v1/tasks/"+started.ID+"?wait_ms=1&wait_until=nap", "", &task)
		}
		require.NotNil(t, task.Step)
	}
}

func TestWaitsForStepsThatCannotEndAreRefused(t *testing.T) {
	t.Parallel()
	e := serving(t, Config{Store: pgtest.DSN(t)})
	require.NoError(t, e.Publish(t.Context(), "f", []byte(`{"start":"nap","nodes":{"nap":{"kind":"timer","params":{"delay_ms":1}}}}`)))
	id, err := e.Start(t.Context(), "f", nil)
	require.NoError(t, err)
	_, err = e.WaitForStep(t.Context(), id, "nap#2")
	require.ErrorContains(t, err, "is completed, and its step nap#2 has not ended")
	for request, says := range map[[3]string]string{
		{"POST", "/v1/tasks", `{"flow":"f","wait_ms":1,"wait_until":"nab"}`}:                `the flow has no node \"nab\"`,
		{"POST", "/v1/tasks", `{"flow":"f","wait_until":"nap"}`}:                            "without wait_ms the answer does not wait",
		{"POST", "/v1/tasks", `{"flow":"f","dry_run":true,"wait_ms":1,"wait_until":"nap"}`}: "a dry run starts no task to wait for",
		{"GET", "/v1/tasks/" + id + "?wait_ms=1&wait_until=nab", ""}:                        "did you mean nap?",
		{"GET", "/v1/tasks/" + id + "?wait_until=nap", ""}:                                  "without wait_ms the answer does not wait",
		{"POST", "/v1/tasks/starts", `{"starts":[{"flow":"f","wait_until":"nap"}]}`}:        "cannot wait for the tasks",
		{"GET", "/v1/tasks/" + id + "?wait_ms=60000&wait_until=nap%232", ""}:                `"state":"completed"`,
	} {
		var answer json.RawMessage
		callJSON(t, e, request[0], request[1], request[2], &answer)
		require.Contains(t, string(answer), says)
	}
}
