package pocketflowhttp

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFlowOfThisDialectGoesOnAfterAFailedStep(t *testing.T) {
	s := serve(t)
	post := func(path, body string) (id string) {
		resp, text := s.do(t, http.MethodPost, path, body)
		require.Equal(t, http.StatusOK, resp.StatusCode, text)
		var made struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(text), &made))
		return made.ID
	}
	flow := post("/api/flows", `{"Name":"sell"}`)
	sell := `{"start":"charge","nodes":{"charge":{"exec_type":"local_func","func":"none"},"ship":{"kind":"timer","params":{"delay_ms":0}}},"edges":[{"from":"charge","action":"default","to":"ship"}]}`
	body, err := json.Marshal(map[string]any{"FlowID": flow, "Version": 1, "DefinitionJSON": sell, "Status": "published"})
	require.NoError(t, err)
	version := post("/api/flows/version", string(body))
	task := post("/api/tasks", `{"FlowID":"`+flow+`"}`)
	_, err = s.member.Await(t.Context(), task)
	require.NoError(t, err)
	row, err := s.store.Task(t.Context(), task)
	require.NoError(t, err)
	require.Equal(t, "completed", row.Status)

	v, err := s.store.Version(t.Context(), version)
	require.NoError(t, err)
	require.Contains(t, string(v.Definition), `"profile":"pocketflow"`, "the version says so")
	_, text := s.do(t, http.MethodGet, "/api/flows/version/get?id="+version, "")
	var got struct {
		Definition string `json:"definition_json"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Equal(t, sell, got.Definition, "and its client gets what it sent")
}
