package orkhttp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// dialectOf returns the dialect of a member with one flow.
func dialectOf(t *testing.T, definition string) (*dialect, *actors.Member) {
	store := model.New(model.Options{})
	member, err := actors.Start(t.Context(), actors.Config{Store: store, Lease: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, member.Stop(context.Background())) })
	require.NoError(t, store.CreateFlow(t.Context(), persistence.Flow{ID: "f"}))
	require.NoError(t, store.CreateVersion(t.Context(), persistence.Version{ID: "v", FlowID: "f",
		Status: "published", Definition: json.RawMessage(definition)}))
	return &dialect{Member: api.Member{Engine: member, Store: store, Reader: persistence.NewReader(store, flow.Limits{})}}, member
}

// get returns the answer of a route.
func get[T any](t *testing.T, h api.Handler, id string) (v T) {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.SetPathValue("run", id)
	require.NoError(t, h(w, r))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v))
	return v
}

type readRun struct {
	Run   runDetails `json:"run"`
	Tasks []runTask  `json:"tasks"`
}

func TestARunHasStartedOnceItRuns(t *testing.T) {
	d, member := dialectOf(t, `{"profile":"ork","concurrency":{"limit":1},"nodes":{"a":{"route":"direct"}}}`)
	var ids []string
	for range 2 {
		started, err := member.StartTask(t.Context(), engine.NewTask{VersionID: "v"})
		require.NoError(t, err)
		ids = append(ids, started.Task)
	}
	status := func(id string) string { return get[readRun](t, d.getRun, id).Run.Status }
	require.Eventually(t, func() bool { return status(ids[0]) == running }, 20*time.Second, time.Millisecond)
	first, second := get[readRun](t, d.getRun, ids[0]).Run, get[readRun](t, d.getRun, ids[1]).Run
	require.NotNil(t, first.StartedAt)
	require.Equal(t, pending, second.Status)
	require.Nil(t, second.StartedAt)

	_, err := member.Do(t.Context(), engine.Order{Task: ids[0], Command: flow.Cancel{Force: true}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return status(ids[1]) == running }, 20*time.Second, time.Millisecond)
	second = get[readRun](t, d.getRun, ids[1]).Run
	first = get[readRun](t, d.getRun, ids[0]).Run
	require.False(t, second.StartedAt.Before(first.FinishedAt.Time), "it began when there was room for it")
	for _, listed := range get[struct{ Items []runItem }](t, d.listRuns, "").Items {
		require.Equal(t, get[readRun](t, d.getRun, listed.ID).Run.StartedAt, listed.StartedAt)
	}
}

func TestATaskHasTheAddressOfItsLogs(t *testing.T) {
	d, member := dialectOf(t, `{"profile":"ork","nodes":{"a":{"name":"x `+
		`y","route":"direct"},"b":{"route":"direct","each":{"count":2}},"c":{"route":"direct","depends_on":["a"]}}}`)
	started, err := member.StartTask(t.Context(), engine.NewTask{VersionID: "v"})
	require.NoError(t, err)
	var told []any
	for _, one := range get[readRun](t, d.getRun, started.Task).Tasks {
		if one.Logs == nil {
			told = append(told, nil)
			continue
		}
		told = append(told, *one.Logs)
	}
	at := "/api/runs/" + publicRunID(started.Task) + "/tasks/"
	require.Equal(t, []any{at + "x%20y/logs", at + "b/logs?index=0", at + "b/logs?index=1", nil}, told)
}
