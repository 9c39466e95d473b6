package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/client"
	v1 "github.com/troupe-engine/troupe/api/v1"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/carriers/functions"
	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	err := goleak.Find()
	for tries := 0; err != nil && tries < 4; tries++ { // the actor library counts the last dead letters for a while
		err = goleak.Find()
	}
	if code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// server is a member behind its shell. A wrapper in front of it may spoil answers.
type server struct {
	engine  *actors.Member
	handler http.Handler
	base    string
}

func startServer(t *testing.T, inFront func(http.Handler) http.Handler) *server {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	local := functions.New(functions.Options{})
	functions.RegisterDemo(local)
	registry, err := workers.Open(t.Context(), store, workers.Options{Self: "here", Functions: local.Names})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, registry.Close(context.Background())) })
	reader := persistence.NewReader(store, flow.Limits{})
	engine, err := actors.Start(t.Context(), actors.Config{Store: store, Reader: reader, Lease: time.Hour,
		Carriers: map[flow.ExecType]actors.Carrier{flow.ExecFunc: local}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Stop(context.Background())) })
	from := api.Member{Engine: engine, Store: store, Reader: reader, Registry: registry}
	routes, err := v1.New(v1.Config{Member: from, StoreKind: "sqlite", Name: "here"})
	require.NoError(t, err)
	shell, err := api.New(api.Config{Member: from, Families: []api.Family{routes}, Tokens: []string{token}})
	require.NoError(t, err)
	handler := shell.Handler()
	if inFront != nil {
		handler = inFront(handler)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return &server{engine, handler, web.URL}
}

const token = "a secret"

func connect(t *testing.T, base string, more ...func(*client.Options)) *client.Client {
	t.Helper()
	o := client.Options{Token: token, HTTPClient: &http.Client{Transport: &http.Transport{}}}
	for _, m := range more {
		m(&o)
	}
	c, err := client.New(base, o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

const (
	waits = `{"start":"w","nodes":{"w":{"kind":"wait_event","params":{"signal_key":"$shared.go"},"post":{"output_key":"got"}}}}`
	upper = "name: Upper\nresult: out\nstart: u\nnodes:\n  u: {exec_type: local_func, func: " +
		"upper, prep: {input_key: $params.text}, post: {output_key: out}}\n"
	queued = `{"start":"q","nodes":{"q":{"service":"paint","exec_type":"queue"}}}`
	// slow emits an event every few milliseconds for a while.
	slow = `{"start":"t","on_missing":"coerce","nodes":{"t":{"kind":"timer","params":{"delay_ms":5}},"again":{"kind":"choice","choice_cases":[{"action":"more","expr":{"ne":["$shared.stop",true]}}],"default_action":"enough"}},"edges":[{"from":"t","action":"default","to":"again"},{"from":"again","action":"more","to":"t"}]}`
)

func TestEveryCallHasItsAnswer(t *testing.T) {
	s := startServer(t, nil)
	c := connect(t, s.base)
	ctx := t.Context()

	info, err := c.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, "here", info.Member)

	published, err := c.Publish(ctx, "", []byte(upper))
	require.NoError(t, err)
	require.Equal(t, "upper", published.Flow.Slug)
	published, err = c.Publish(ctx, "waits", []byte(waits))
	require.NoError(t, err)
	require.True(t, published.Created)
	again, err := c.Publish(ctx, "waits", []byte(waits))
	require.NoError(t, err)
	require.False(t, again.Created)
	validation, err := c.Validate(ctx, []byte("start: x\n"))
	require.NoError(t, err)
	require.False(t, validation.Valid)
	flows, err := c.Flows(ctx, client.Paging{})
	require.NoError(t, err)
	require.Len(t, flows.Items, 2)
	f, err := c.Flow(ctx, "waits")
	require.NoError(t, err)
	require.Equal(t, published.Flow, *f)
	versions, err := c.Versions(ctx, "waits", client.Paging{Limit: 1})
	require.NoError(t, err)
	require.Len(t, versions.Items, 1)
	for _, number := range []int{0, 1} {
		v, err := c.Version(ctx, "waits", number)
		require.NoError(t, err)
		require.JSONEq(t, strings.Replace(waits, `{`, `{"profile":"troupe",`, 1), string(v.Definition), "what it left unsaid is said")
	}

	started, err := c.Start(ctx, wire.StartRequest{Flow: "upper", Params: json.RawMessage(`{"text":"a"}`), WaitMS: 20000})
	require.NoError(t, err)
	require.Equal(t, `"A"`, string(started.Task.Result))
	started, err = c.Start(ctx, wire.StartRequest{Flow: "waits", Labels: map[string]string{"a": "b:c"}, IdempotencyKey: "k"})
	require.NoError(t, err)
	id := started.ID
	found, err := c.Tasks(ctx, client.TaskQuery{Flow: "waits",
		States: []string{"pending", "running"}, Labels: map[string]string{"a": "b:c"},
		CreatedFrom: time.Now().Add(-time.Minute), CreatedTo: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	require.Equal(t, id, found.Items[0].ID)
	paused, err := c.Pause(ctx, id)
	require.NoError(t, err)
	require.True(t, paused.Paused)
	_, err = c.Resume(ctx, id)
	require.NoError(t, err)
	waiting, err := c.Waiting(ctx, id)
	require.NoError(t, err)
	require.Equal(t, "signal", waiting.Waits[0].Kind)
	_, err = c.Signal(ctx, id, "go", json.RawMessage(`12345678901234567890`))
	require.NoError(t, err)
	ended, err := c.Wait(ctx, id)
	require.NoError(t, err)
	require.Equal(t, `{"go":12345678901234567890,"got":12345678901234567890}`, string(ended.Result))
	runs, err := c.Runs(ctx, id, client.Paging{})
	require.NoError(t, err)
	require.Equal(t, "w", runs.Items[0].Node)
	events, err := c.Events(ctx, id, "", 2)
	require.NoError(t, err)
	require.Len(t, events.Items, 2)
	require.Equal(t, events.Items[1].ID, events.Next)

	_, err = c.Publish(ctx, "queued", []byte(queued))
	require.NoError(t, err)
	started, err = c.Start(ctx, wire.StartRequest{Flow: "queued"})
	require.NoError(t, err)
	got, err := s.engine.Poll(ctx, engine.Poll{Worker: "w", Services: []string{"paint"}, Wait: time.Minute})
	require.NoError(t, err)
	job, err := c.Job(ctx, got[0].Job.ID())
	require.NoError(t, err)
	require.Equal(t, "claimed", job.State)
	jobs, err := c.Jobs(ctx, client.Paging{}, "paint")
	require.NoError(t, err)
	require.Equal(t, job.ID, jobs.Items[0].ID)
	queues, err := c.Queues(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, queues[0].Waiting)
	known, err := c.Workers(ctx)
	require.NoError(t, err)
	require.Equal(t, "here", known[0].ID)
	canceled, err := c.Cancel(ctx, started.ID)
	require.NoError(t, err)
	require.Equal(t, "canceled", canceled.State)
}

const workList = `{"mode":"dag","nodes":{"list":{"kind":"fanout","route":"direct","each":{"items":"$run"}},"more":{"route":"direct","depends_on":["list"]}}}`

func TestADagIsSteered(t *testing.T) {
	s := startServer(t, nil)
	c := connect(t, s.base)
	ctx := t.Context()
	_, err := c.Publish(ctx, "list", []byte(workList))
	require.NoError(t, err)
	started, err := c.Start(ctx, wire.StartRequest{Flow: "list", Input: json.RawMessage(`["a"]`)})
	require.NoError(t, err)
	id := started.ID
	list := wire.StepName{Step: "list"}
	added, err := c.Append(ctx, id, wire.AppendUnits{StepName: list, Items: []json.RawMessage{json.RawMessage(`"b"`)}})
	require.NoError(t, err)
	require.Equal(t, []int{1}, added.Units)
	units, err := c.Units(ctx, id, client.StepQuery{Step: "list", States: []string{"dispatched"}}, 1)
	require.NoError(t, err)
	require.Equal(t, `"b"`, string(units.Items[1].Input))
	for unit := range 2 {
		done, err := c.Complete(ctx, id, wire.CompleteRequest{StepName: list, Unit: unit, Output: json.RawMessage(`1`)})
		require.NoError(t, err)
		require.True(t, done.Changed)
	}
	_, err = c.Complete(ctx, id, wire.CompleteRequest{StepName: wire.StepName{Step: "more"}, Error: "not now"})
	require.NoError(t, err)
	task, err := c.Wait(ctx, id)
	require.NoError(t, err)
	require.Equal(t, "failed", task.State)
	_, err = c.Retry(ctx, id)
	require.NoError(t, err)
	steps, err := c.Steps(ctx, id, client.StepQuery{States: []string{"started"}})
	require.NoError(t, err)
	require.Equal(t, "more", steps.Items[0].Node)
	canceled, err := c.CancelHow(ctx, id, wire.CancelRequest{Graceful: true})
	require.NoError(t, err)
	require.Equal(t, "canceled", canceled.State, "of what is in flight nobody but a person would be at work")
}

func TestAListIsReadPageByPage(t *testing.T) {
	c := connect(t, startServer(t, nil).base)
	_, err := c.Publish(t.Context(), "waits", []byte(waits))
	require.NoError(t, err)
	for range 7 {
		_, err := c.Start(t.Context(), wire.StartRequest{Flow: "waits"})
		require.NoError(t, err)
	}
	seen := map[string]bool{}
	for task, err := range client.All(func(cursor string) (*wire.Page[wire.TaskSummary], error) {
		return c.Tasks(t.Context(), client.TaskQuery{Paging: client.Paging{Cursor: cursor, Limit: 3}})
	}) {
		require.NoError(t, err)
		seen[task.ID] = true
	}
	require.Len(t, seen, 7)
	for _, err := range client.All(func(string) (*wire.Page[wire.Flow], error) { return nil, errors.New("broken") }) {
		require.EqualError(t, err, "broken")
	}
}

func TestARefusalSaysWhatToDo(t *testing.T) {
	s := startServer(t, nil)
	c := connect(t, s.base)
	_, err := c.Task(t.Context(), "nope")
	require.Equal(t, "not_found", client.KindOf(err))
	require.ErrorContains(t, err, "check the id")
	_, err = c.Publish(t.Context(), "x", []byte("start: a\nnodes:\n  b: {kind: odd}\n"))
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Problems, 2)
	require.ErrorContains(t, err, "3:13: error: nodes.b.kind")
	_, err = c.Tasks(t.Context(), client.TaskQuery{States: []string{"odd"}})
	require.Equal(t, "invalid", client.KindOf(err))
	require.ErrorContains(t, err, "known are: pending")
	stranger := connect(t, s.base, func(o *client.Options) { o.Token = "wrong" })
	_, err = stranger.Info(t.Context())
	require.Equal(t, "denied", client.KindOf(err))
	require.ErrorContains(t, err, "the bearer token is wrong")
	_, err = connect(t, s.base, func(o *client.Options) { o.Token = "" }).Info(t.Context())
	require.Equal(t, "denied", client.KindOf(err))
	require.ErrorContains(t, err, "a bearer token is needed")
	_, err = connect(t, s.base, func(o *client.Options) { o.Token = token + "\n" }).Info(t.Context())
	require.NoError(t, err, "as it is read from a file")
	require.Empty(t, client.KindOf(errors.New("another")))
	for _, address := range []string{"", "localhost:1", "ftp://x", "http://", "http://a:1,", "http://a:1 http://b:1", "http://a:1,b:2"} {
		_, err := client.New(address, client.Options{})
		require.Error(t, err, address)
	}
}
