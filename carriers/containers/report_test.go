package containers

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// fakeFiles are in a folder, and have a configurable status.
type fakeFiles struct {
	folder string
	tells  flow.ExternalStatus
	asked  flow.External
	called bool // canceled
}

func (f *fakeFiles) Dispatch(_ context.Context, job *flow.Job) (string, flow.External, error) {
	return filepath.Join(f.folder, "spec.json"), flow.External{ID: "runs/t/a/1/", Data: json.RawMessage(`{"run":"` + job.Task + `"}`)}, nil
}

func (f *fakeFiles) Poll(_ context.Context, x flow.External) (flow.ExternalStatus, error) {
	f.asked = x
	return f.tells, nil
}

func (f *fakeFiles) Cancel(context.Context, flow.External) error {
	f.called = true
	return nil
}

func TestAContainerWithFileReportsSeesTheFilesOfItsAttempt(t *testing.T) {
	folder := t.TempDir()
	folder, err := filepath.EvalSymlinks(folder)
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(folder, link))
	h, files := &fakeHost{}, &fakeFiles{folder: link}
	s := h.on(t, Options{Store: "s", Files: files})
	job := jobOf(flow.Program{Report: flow.ObjectStore}, flow.Container{Image: "x"})
	at := "/containers/" + s.containerName(job.ID())
	var made struct {
		Env        []string
		HostConfig container.HostConfig
	}
	h.answer(map[string]http.HandlerFunc{
		"POST /containers/create": func(w http.ResponseWriter, r *http.Request) {
			assert.NoError(t, json.NewDecoder(r.Body).Decode(&made))
			says(http.StatusCreated, `{"Id":"1"}`)(w, r)
		},
		"GET /containers/json": says(http.StatusOK, "[]"),
		"GET " + at + "/json": says(http.StatusOK,
			`{"Mounts":[{"Type":"bind","Source":"`+folder+
				`","Destination":"/ork/task"}],"State":{"Status":"running"}}`),
		"GET " + at + "/logs":   says(http.StatusOK, ""),
		"POST " + at + "/start": says(http.StatusNoContent, ""),
		"POST " + at + "/stop":  says(http.StatusNoContent, ""),
		"DELETE " + at:          says(http.StatusNoContent, ""),
	})
	report := s.Carry(t.Context(), *job)
	require.Empty(t, report.Error)
	require.Contains(t, made.Env, "TASK_SPEC_PATH=/ork/task/spec.json")
	require.Len(t, made.HostConfig.Mounts, 1)
	require.Equal(t, folder, made.HostConfig.Mounts[0].Source)

	x := report.Deferred[0]
	require.True(t, x.Pending, "its worker has yet to say that it is at it")
	x.Task, x.Job, x.StartedAt = "t", job.ID(), 5
	files.tells = flow.ExternalStatus{Memo: json.RawMessage(`{"beat":"1"}`), BeganAt: 7}
	status, err := s.Poll(t.Context(), x)
	require.NoError(t, err)
	require.Equal(t, []any{false, int64(7)}, []any{status.Ended, status.BeganAt})
	x.Memo = status.Memo
	_, err = s.Poll(t.Context(), x)
	require.NoError(t, err)
	require.Equal(t, flow.External{Task: "t", Job: job.ID(), Service: flow.ObjectStore,
		ID: "runs/t/a/1/", Data: json.RawMessage(`{"run":"t"}`),
		StartedAt: 5, Pending: true, Memo: json.RawMessage(`{"beat":"1"}`)}, files.asked,
		"what was noted of its files is told to who looks at them")
	require.NoError(t, s.Cancel(t.Context(), x))
	require.True(t, files.called)
}

func TestFilesAndExitOfAContainerDetermineItsResult(t *testing.T) {
	said := flow.ExternalStatus{Ended: true, Output: json.RawMessage("7")}
	for name, tt := range map[string]struct {
		state string
		tells flow.ExternalStatus
		later int64 // ms
		want  flow.ExternalStatus
	}{
		"it has ended and said so":    {"exited", said, 0, said},
		"it has said so and goes on":  {"running", said, 0, flow.ExternalStatus{}},
		"and still goes on":           {"running", said, 5_000, said},
		"it has ended without a word": {"exited", flow.ExternalStatus{}, 0, flow.ExternalStatus{}},
		"and there is still none": {"exited", flow.ExternalStatus{}, 5_000,
			flow.ExternalStatus{Ended: true, Error: "exited without a status"}},
		"it was silent for too long": {"running", flow.ExternalStatus{Ended: true,
			Error: "heartbeat timeout"}, 5_000, flow.ExternalStatus{Ended: true, Error: "heartbeat timeout"}},
		"it goes on, and says that it is": {"running", flow.ExternalStatus{}, 60_000, flow.ExternalStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			now := int64(1_000)
			h, f := &fakeHost{}, &fakeFiles{tells: tt.tells}
			s := h.on(t, Options{Store: "s", Files: f, Now: func() int64 { return now }})
			job := flow.JobID("t", flow.Address{Node: "a", Visit: 1, Attempt: 1})
			at := "/containers/" + s.containerName(job)
			h.answer(map[string]http.HandlerFunc{
				"GET " + at + "/json": says(http.StatusOK, `{"State":{"Status":"`+tt.state+`"}}`),
				"GET " + at + "/logs": says(http.StatusOK, encodeOutput("ORK_OUTPUT:1\n")),
			})
			x := flow.External{Service: Name, ID: s.containerName(job), Job: job, Task: "t",
				Data: (&trackerNote{Files: &reportFiles{ID: "f"}}).encodeData()}
			status, err := s.Poll(t.Context(), x)
			require.NoError(t, err)
			if tt.later > 0 {
				require.False(t, status.Ended)
				now, x.Memo = now+tt.later, status.Memo
				status, err = s.Poll(t.Context(), x)
				require.NoError(t, err)
			}
			status.Memo, status.Again = nil, 0
			require.Equal(t, tt.want, status)
		})
	}
}
