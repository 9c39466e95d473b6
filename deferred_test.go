package troupe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
)

// defers is a flow whose node names external jobs and waits for them.
const defers = `nodes: {work: {func: begin, deferred: true}}`

// gate is a tracker whose jobs end when it is open.
type gate struct {
	open           atomic.Bool
	polls, cancels atomic.Int64
	ended          atomic.Int64  // number of stored ends
	polled         chan struct{} // gets one value at the first poll
	again          time.Duration // delay that it asks for before the next poll
	stumbles       bool          // the first poll fails
}

func newGate() *gate { return &gate{polled: make(chan struct{}, 1), again: time.Millisecond} }

func (g *gate) Poll(_ context.Context, x troupe.External) (troupe.ExternalStatus, error) {
	if g.polls.Add(1) == 1 && g.stumbles {
		return troupe.ExternalStatus{Again: g.again}, errors.New("it is away")
	}
	select {
	case g.polled <- struct{}{}:
	default:
	}
	return troupe.ExternalStatus{Ended: g.open.Load(), Output: x.Data, Again: g.again}, nil
}

// Ended counts ends that are stored.
func (g *gate) Ended(context.Context, troupe.External) { g.ended.Add(1) }

func (g *gate) Cancel(context.Context, troupe.External) error {
	g.cancels.Add(1)
	return nil
}

func TestLogLinesAboutExternalJobsContainTheirIds(t *testing.T) {
	var said bytes.Buffer
	g := newGate()
	g.stumbles = true
	g.open.Store(true)
	cfg := troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "troupe.db"),
		Logger: slog.New(slog.NewTextHandler(&said, nil)), Trackers: map[string]troupe.Tracker{"gate": g}}
	e, err := troupe.Open(t.Context(), cfg)
	require.NoError(t, err)
	troupe.Handle(e, "begin", func(context.Context, json.RawMessage) (map[string]any, error) {
		return map[string]any{"deferred": []map[string]any{{"service_type": "gate", "job_id": "1"}}}, nil
	})
	require.NoError(t, e.Publish(t.Context(), "work", []byte(defers)))
	id, err := e.Start(t.Context(), "work", nil)
	require.NoError(t, err)
	_, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.Regexp(t, `checking external work failed.*task=`+id+` node=work unit=0 attempt=1`, said.String())
}

// deferring opens an engine with the flow defers, whose function starts some jobs; begun counts
// them.
func deferring(t *testing.T, store string, g *gate, jobs ...map[string]any) (e *troupe.Engine, begun *atomic.Int64) {
	t.Helper()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: store, AllowMock: true,
		IdleAfter: time.Millisecond, Trackers: map[string]troupe.Tracker{"gate": g}})
	require.NoError(t, err)
	begun = &atomic.Int64{}
	troupe.Handle(e, "begin", func(context.Context, json.RawMessage) (map[string]any, error) {
		begun.Add(1)
		return map[string]any{"deferred": jobs, "data": "of the work"}, nil
	})
	require.NoError(t, e.Publish(t.Context(), "work", []byte(defers)))
	return e, begun
}

var gated = map[string]any{"service_type": "gate", "job_id": "j1"}

func TestATaskCompletesWhenItsExternalJobsHaveEnded(t *testing.T) {
	mock := func(id string) map[string]any {
		return map[string]any{"service_type": "custom_http", "job_id": id, "url": "mock://success/" + id}
	}
	e, begun := deferring(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"), newGate(), mock("a"), mock("b"))
	id, err := e.Start(t.Context(), "work", nil)
	require.NoError(t, err)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.JSONEq(t, `{"work": "of the work"}`, string(result.Value), result.Error)
	require.EqualValues(t, 1, begun.Load())
	require.NoError(t, e.Close())
}

func TestExternalJobsContinueWhileTheMemberIsDown(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	first := newGate()
	e, begun := deferring(t, store, first, gated)
	id, err := e.Start(t.Context(), "work", nil)
	require.NoError(t, err)
	<-first.polled
	require.NoError(t, e.Close())

	second := newGate()
	second.open.Store(true)
	e, again := deferring(t, store, second, gated)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.JSONEq(t, `{"work": "of the work"}`, string(result.Value), result.Error)
	require.Equal(t, []int64{1, 0}, []int64{begun.Load(), again.Load()}, "nobody begins it again")
	require.Eventually(t, func() bool { return second.ended.Load() == 1 }, 10*time.Second,
		time.Millisecond, "who looks after it hears that its end is stored")
	require.NoError(t, e.Close())
}

func TestCancelingATaskCancelsItsExternalJobs(t *testing.T) {
	g := newGate()
	e, _ := deferring(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"), g, gated)
	id, err := e.Start(t.Context(), "work", nil)
	require.NoError(t, err)
	<-g.polled
	waiting, err := e.Waiting(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []string{"external", "external job gate j1 must end"}, []string{waiting.Waits[0].Kind, waiting.Waits[0].Text})
	require.NoError(t, e.Cancel(t.Context(), id))
	require.Eventually(t, func() bool { return g.cancels.Load() == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, e.Close())
	require.EqualValues(t, 1, g.cancels.Load())
}

func TestExternalJobsOfAnUnknownServiceFail(t *testing.T) {
	e, _ := deferring(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"), newGate(), map[string]any{"service_type": "nobody", "job_id": "j"})
	id, err := e.Start(t.Context(), "work", nil)
	require.NoError(t, err)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Contains(t, result.Error, `no tracker for service type "nobody"`)
	require.NoError(t, e.Close())
}

// elsewhere starts jobs named after ours.
type elsewhere struct{ begun chan string }

func (s elsewhere) Start(_ context.Context, job flow.Job, _ bool) flow.Report {
	s.begun <- job.ID()
	return flow.Report{Deferred: []troupe.External{{Service: "gate", ID: "of " + job.ID(), Data: job.Input}}}
}

func TestTheOutputOfAStartersJobIsTheOutputOfTheAttempt(t *testing.T) {
	g, s := newGate(), elsewhere{make(chan string, 2)}
	g.open.Store(true)
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db"),
		Trackers: map[string]troupe.Tracker{"gate": g}, Starters: map[string]troupe.Starter{"elsewhere": s}})
	require.NoError(t, err)
	require.NoError(t, e.Publish(t.Context(), "work",
		[]byte(`nodes: {work: {exec_type: external, service: elsewhere}, other: {exec_type: `+
			`external, service: nowhere}}`)))
	id, err := e.Start(t.Context(), "work", map[string]any{"n": 1})
	require.NoError(t, err)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Contains(t, result.Error, `nobody on this member begins jobs of "nowhere": it knows elsewhere`)
	require.Contains(t, <-s.begun, id)
	require.Empty(t, s.begun, "it is begun once")
	runs, err := e.Runs(t.Context(), id, troupe.Paging{})
	require.NoError(t, err)
	for _, run := range runs.Items {
		if run.Node == "work" {
			require.JSONEq(t, `{"run": {"n": 1}}`, string(run.Output))
		}
	}
	require.NoError(t, e.Close())
}
