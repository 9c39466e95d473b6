package cloudrun

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/carriers/external"
	"github.com/troupe-engine/troupe/cloud/internal/fakes"
	"github.com/troupe-engine/troupe/cloud/internal/google"
	"github.com/troupe-engine/troupe/flow"
)

func TestOrphanedExecutionIsCanceledUntilThatSucceeds(t *testing.T) {
	g := fakes.NewGoogle(t)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", g.Credentials(t))
	g.Run.Behave("endless", fakes.Behavior{Looks: 1_000_000})
	g.Refuse(fakes.Refusal{Match: ":cancel", Status: 503})
	s, err := New(Options{Client: google.NewAccount().Client(), Endpoint: g.URL, Project: "p", Region: "r", Tools: troupe.ServiceTools{
		Files: external.NewObjects(external.ObjectsOptions{}),
		Live:  func(context.Context, string) (bool, error) { return false, nil },
		Now:   func() int64 { return time.Now().UnixMilli() },
	}})
	require.NoError(t, err)
	defer s.Close()

	report := s.Start(t.Context(), flow.Job{Task: "task-1", Exec: &flow.Exec{Type: flow.ExecExternal,
		Service: Name}, Params: json.RawMessage(`{"exec": {"job": "endless"}}`)}, false)
	require.Empty(t, report.Error)
	require.Eventually(t, func() bool { return g.Run.Executions("endless")[0].Cancels == 1 }, time.Minute, 50*time.Millisecond)
}
