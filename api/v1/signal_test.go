package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnUnreadSignalIsAcceptedWithAWarning(t *testing.T) {
	s := start(t)
	s.call(201, "PUT", "/v1/flows/pay", `{"start":"w","nodes":{
		"w":{"kind":"wait_event","params":{"signal_key":"$shared.approved"}},
		"c":{"kind":"choice","choice_cases":[{"action":"x","expr":{"gt":["$shared.amount.net",1]}},{"action":"y","expr":"shared.note != ''"}]}},
		"edges":[{"from":"w","action":"default","to":"c"}]}`)
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": "pay"})["id"].(string)
	signal := func(key string) any {
		return s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": key, "value": true})["warning"]
	}
	require.Equal(t, `nothing in flow pay reads the key "aproved": it reads amount, amount.net, `+
		`approved, note (did you mean approved?)`, signal("aproved"))
	require.Nil(t, signal("amount"))
	require.Nil(t, signal("note"))
	require.Nil(t, signal("approved"))
}

func TestATaskThatHasCompletedRefusesSignals(t *testing.T) {
	s := start(t)
	s.call(201, "PUT", "/v1/flows/f", waits)
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": "f"})["id"].(string)
	send := []string{"Request-Id", "once"}
	s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go", "value": 1}, send...)
	s.ended(id, "completed")
	p := s.refused(409, "body", "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go", "value": 2})
	require.Equal(t, "the task is completed: it reads no more signals", p["message"])
	s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go", "value": 1}, send...)
	s.call(200, "POST", "/api/tasks/signal", obj{"task_id": id, "key": "go", "value": 2})

	canceled := s.call(200, "POST", "/v1/tasks/"+id+"/cancel", nil)
	require.Equal(t, "the task has completed already: nothing was canceled", canceled["warning"])
	require.Equal(t, "completed", canceled["state"])
}

func TestCancelingACanceledTaskIsDone(t *testing.T) {
	s := start(t)
	s.call(201, "PUT", "/v1/flows/f", waits)
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": "f"})["id"].(string)
	for range 2 {
		canceled := s.call(200, "POST", "/v1/tasks/"+id+"/cancel", nil)
		require.Equal(t, "canceled", canceled["state"])
		require.Nil(t, canceled["warning"])
	}
	s.refused(409, "body", "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go"})
}

func TestATaskThatHasFailedTakesSignalsForARetry(t *testing.T) {
	s := start(t)
	s.call(201, "PUT", "/v1/flows/f",
		`{"start":"w","on_error":"fail","nodes":{"w":{"kind":"wait_event","params":{"signal_key":"$shared.go","timeout_ms":1}}}}`)
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": "f"})["id"].(string)
	failed := s.ended(id, "failed")
	require.Equal(t, "w: timeout", failed["error"], "it says which node failed")
	answer := s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go", "value": 1})
	require.Equal(t, "the task has failed: the signal is read if it is retried", answer["warning"])
	require.Equal(t, "the task has failed already: nothing was canceled", s.call(200, "POST", "/v1/tasks/"+id+"/cancel", nil)["warning"])
	s.call(200, "POST", "/v1/tasks/"+id+"/retry", nil)
	s.ended(id, "completed")
}
