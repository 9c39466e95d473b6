package pocketflowhttp

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAListShowsWhatItCanOfATaskThatCannotBeRead(t *testing.T) {
	s := serve(t)
	member := s.member
	require.NoError(t, s.store.CreateFlow(t.Context(), persistence.Flow{ID: "flow-1", Name: "f"}))
	require.NoError(t, s.store.CreateVersion(t.Context(), persistence.Version{ID: "v-1", FlowID: "flow-1", Number: 1, Status: "published",
		Definition: []byte(`{"start":"a","nodes":{"a":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}`)}))
	started, err := member.StartTask(t.Context(), engine.NewTask{VersionID: "v-1"})
	require.NoError(t, err)
	errs, err := s.store.Commit(t.Context(), member.Incarnation(),
		[]persistence.Commit{{Task: "bad", Seq: 1, At: 1, Events: []byte(`{"f":99,"e":[]}`),
			Create: &persistence.Create{FlowID: "flow-1", VersionID: "v-1", Params: []byte(`{"n":1}`),
				CreatedAt: 1}, Columns: &persistence.Columns{Status: "running", Cursor: "a"}}})
	require.NoError(t, err)
	require.NoError(t, errs[0])

	resp, body := s.do(t, http.MethodGet, "/api/tasks", "")
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	var page graphPage[struct {
		ID, Status string
		Shared     string `json:"shared_json"`
	}]
	require.NoError(t, json.Unmarshal([]byte(body), &page), body)
	require.Len(t, page.Data, 2)
	require.Equal(t, started.Task, page.Data[0].ID)
	require.Equal(t, "bad", page.Data[1].ID)
	require.Equal(t, "running", page.Data[1].Status)
	require.Contains(t, page.Data[1].Shared, "the task cannot be read")

	resp, body = s.do(t, http.MethodGet, "/api/tasks/get?id=bad", "")
	require.Equal(t, http.StatusConflict, resp.StatusCode)
	require.Contains(t, body, "it can be canceled")
	resp, body = s.do(t, http.MethodPost, "/api/tasks/cancel?id=bad", "")
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	resp, body = s.do(t, http.MethodGet, "/api/tasks/get?id=bad", "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, body, "canceled")
}
