package pocketflowhttp

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestValuesThatNestTooDeepAreRefused(t *testing.T) {
	s := serve(t)
	require.NoError(t, s.store.CreateFlow(t.Context(), persistence.Flow{ID: "flow-1", Name: "f"}))
	require.NoError(t, s.store.CreateVersion(t.Context(), persistence.Version{ID: "v-1", FlowID: "flow-1", Number: 1, Status: "published",
		Definition: []byte(`{"start":"a","nodes":{"a":{"service":"s","exec_type":"queue","post":{"output_key":"o"}}}}`)}))
	deep := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	params, err := json.Marshal(`{"a":` + deep + `}`)
	require.NoError(t, err)

	resp, body := s.do(t, http.MethodPost, "/api/tasks", `{"FlowVersionID":"v-1","ParamsJSON":`+string(params)+`}`)
	require.Equal(t, http.StatusUnprocessableEntity, resp.StatusCode)
	require.Contains(t, body, "params nests arrays and objects deeper than 1000 levels")

	member := s.member
	started, err := member.StartTask(t.Context(), engine.NewTask{VersionID: "v-1"})
	id := started.Task
	require.NoError(t, err)
	resp, body = s.do(t, http.MethodPost, "/api/tasks/signal", `{"task_id":"`+id+`","key":"k","value":`+deep+`}`)
	require.Equal(t, http.StatusUnprocessableEntity, resp.StatusCode)
	require.Contains(t, body, "the signal's value nests arrays and objects deeper than 1000 levels")

	jobs, err := member.Poll(t.Context(), engine.Poll{Worker: "w", Services: []string{"s"}})
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	resp, body = s.do(t, http.MethodPost, "/api/queue/complete", `{"queue_id":"q-`+flow.JobID(id,
		jobs[0].Job.Address)+`","result":`+deep+`}`)
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	resp, body = s.do(t, http.MethodGet, "/api/tasks/runs?task_id="+id, "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, body, "the output nests arrays and objects deeper than 1000 levels", "its attempt has failed")
}
