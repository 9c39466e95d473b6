package troupe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
)

// yard is a service whose jobs end at the first poll; it logs their data.
type yard struct {
	tools  troupe.ServiceTools
	closed chan struct{}
}

func (y *yard) Start(_ context.Context, job flow.Job, _ bool) flow.Report {
	return flow.Report{Log: true, Deferred: []flow.External{{Service: "yard", ID: job.ID()}}}
}

func (y *yard) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	live, err := y.tools.Live(ctx, x.Job)
	if err != nil || !live {
		return flow.ExternalStatus{Ended: true, Error: fmt.Sprintf("nobody waits for it: %v", err)}, nil
	}
	log := y.tools.Logs.Resume(x.Task, x.Job, "yard")
	fmt.Fprintln(log, "seen by", y.tools.Member)
	log.Close()
	output, err := json.Marshal(y.tools.Store)
	return flow.ExternalStatus{Ended: true, Output: output}, err
}

func (y *yard) Cancel(context.Context, flow.External) error { return nil }

func (y *yard) Close() error {
	close(y.closed)
	return nil
}

func TestAServiceStartsAndFollowsJobsWithTheMembersTools(t *testing.T) {
	y := &yard{closed: make(chan struct{})}
	open := func(tools troupe.ServiceTools) (troupe.Service, error) {
		y.tools = tools
		return y, nil
	}
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(),
		"x.db"), Name: "m", Services: map[string]troupe.OpenService{"yard": open}})
	require.NoError(t, err)
	require.NoError(t, e.Publish(t.Context(), "work", []byte(`nodes: {work: {exec_type: external, service: yard}}`)))
	id, err := e.Start(t.Context(), "work", nil)
	require.NoError(t, err)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Regexp(t, `^\{"work":\s*"[0-9a-f]{16}"\}$`, string(result.Value), result.Error)
	logs := logged(t, e, id, 1)
	require.Equal(t, "seen by m", logs.Items[0].Text)
	require.NoError(t, e.Close())
	<-y.closed
}

func TestOpenFailsIfAServiceFails(t *testing.T) {
	for range 10 { // in any order
		y := &yard{closed: make(chan struct{})}
		opened := false
		_, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(
			t.TempDir(), "x.db"), Services: map[string]troupe.OpenService{
			"yard":   func(troupe.ServiceTools) (troupe.Service, error) { opened = true; return y, nil },
			"broken": func(troupe.ServiceTools) (troupe.Service, error) { return nil, errors.New("it is broken") },
		}})
		require.ErrorContains(t, err, "it is broken")
		if opened {
			<-y.closed
		}
	}
}
