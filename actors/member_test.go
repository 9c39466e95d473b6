package actors_test

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// carry makes a function a carrier.
type carry func(context.Context, flow.Job) flow.Report

func (f carry) Carry(ctx context.Context, j flow.Job) flow.Report { return f(ctx, j) }

// harness is a member on a store of its own.
type harness struct {
	*actors.Member
	store  persistence.Store
	reader *persistence.Reader
}

func openStore(t *testing.T, path string) persistence.Store {
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.NoError(t, err)
	return store
}

// patience is how long tests wait for events that are immediate on an idle machine.
const patience = time.Minute

func start(t *testing.T, cfg actors.Config) *harness {
	t.Helper()
	cfg.Lease = cmp.Or(cfg.Lease, time.Hour) // a machine may be busy for longer than the default
	if cfg.Store == nil {
		cfg.Store = openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
		t.Cleanup(func() { cfg.Store.Close() })
	}
	cfg.Reader = persistence.NewReader(cfg.Store, cfg.Limits)
	m, err := actors.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(m.Kill)
	return &harness{Member: m, store: cfg.Store, reader: cfg.Reader}
}

// publish stores a definition as a flow's only version.
func (th *harness) publish(t *testing.T, definition string) string {
	t.Helper()
	flowID := "flow-" + t.Name() + time.Now().Format("150405.000000000")
	require.NoError(t, th.store.CreateFlow(t.Context(), persistence.Flow{ID: flowID, Name: t.Name()}))
	v := persistence.Version{ID: "ver-" + flowID, FlowID: flowID, Number: 1, Status: "published", Definition: []byte(definition)}
	require.NoError(t, th.store.CreateVersion(t.Context(), v))
	return v.ID
}

// insist starts a task with retries while the store is unavailable.
func (th *harness) insist(t *testing.T, n engine.NewTask) (id string) {
	t.Helper()
	require.Eventually(t, func() (done bool) {
		var err error
		if id, _, err = th.StartTask(t.Context(), n); err != nil {
			assert.ErrorIs(t, err, engine.ErrUnavailable)
		}
		return err == nil
	}, patience, time.Millisecond)
	return id
}

func (th *harness) run(t *testing.T, version, params string) *persistence.View {
	t.Helper()
	id, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Params: json.RawMessage(params)})
	require.NoError(t, err)
	return th.ended(t, id)
}

func (th *harness) ended(t *testing.T, id string) *persistence.View {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := th.Await(ctx, id)
	require.NoError(t, err)
	view, err := th.reader.View(t.Context(), id)
	require.NoError(t, err)
	return view
}

// increment adds one to a number.
func increment(_ context.Context, j flow.Job) flow.Report {
	var n int
	if err := json.Unmarshal(j.Input, &n); err != nil {
		return flow.Report{Error: err.Error()}
	}
	out, _ := json.Marshal(n + 1)
	return flow.Report{Output: out}
}

const chainOfThree = `
start: a
nodes:
  a: {exec_type: local_func, func: inc, prep: {input_key: $params.n}, post: {output_key: x}}
  b: {exec_type: local_func, func: inc, prep: {input_key: x}, post: {output_key: x}}
  c: {exec_type: local_func, func: inc, prep: {input_key: x}, post: {output_key: x}}
edges:
  - {from: a, action: default, to: b}
  - {from: b, action: default, to: c}
`

func withFunc(f carry) actors.Config {
	return actors.Config{Carriers: map[flow.ExecType]actors.Carrier{flow.ExecFunc: f}}
}

func TestAChainRunsToItsEnd(t *testing.T) {
	th := start(t, withFunc(increment))
	view := th.run(t, th.publish(t, chainOfThree), `{"n":1}`)
	require.Equal(t, flow.TaskCompleted, view.State.Status)
	require.JSONEq(t, `{"x":4}`, string(view.State.Root.SharedJSON()))
	runs, err := th.reader.Runs(t.Context(), view.ID, flow.Place{}, 10, 1<<20)
	require.NoError(t, err)
	require.Len(t, runs.Runs, 3)
}

func TestAForeachKeepsTheOrderOfItsItems(t *testing.T) {
	th := start(t, withFunc(increment))
	view := th.run(t, th.publish(t, `
start: each
nodes:
  each: {kind: foreach, exec_type: local_func, func: inc, parallel_mode: concurrent, max_parallel: 4, prep: {input_key: $params.list}, post: {output_key: out}}
`), `{"list":[5,4,3,2,1,0,9,8,7]}`)
	require.JSONEq(t, `{"out":[6,5,4,3,2,1,10,9,8]}`, string(view.State.Root.SharedJSON()))
}
