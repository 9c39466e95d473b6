package v1_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	v1 "github.com/troupe-engine/troupe/api/v1"
	"github.com/troupe-engine/troupe/api/v1/socket"
	"github.com/troupe-engine/troupe/carriers/functions"
	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/dialect/pgflow/pgflowhttp"
	"github.com/troupe-engine/troupe/dialect/pocketflow/pocketflowhttp"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
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

// obj is a JSON object as clients see it.
type obj = map[string]any

// server is a member on a store of its own, behind the shell used in production.
type server struct {
	*testing.T
	base     string
	store    persistence.Store
	engine   *actors.Member
	registry *workers.Registry
	http     *http.Client
	names    atomic.Int64
}

// settings are the parts of a server that tests change.
type settings struct {
	api.Config
	heartbeat time.Duration
	patience  time.Duration
	begin     time.Duration
	v1Logger  *slog.Logger
	listen    func(net.Listener) net.Listener
	idle      time.Duration
	wrap      func(persistence.Store) persistence.Store
	registry  func(api.Registry) api.Registry
	asked     func(engine.Engine) engine.Engine
	postgres  bool
}

func (set *settings) open(t *testing.T) (persistence.Store, error) {
	if set.postgres {
		return postgres.Open(t.Context(), pgtest.DSN(t), postgres.Options{})
	}
	return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
}

// onBothStores runs a test on both stores.
func onBothStores(t *testing.T, test func(*server), with ...func(*settings)) {
	for name, postgres := range map[string]bool{"sqlite": false, "postgres": true} {
		t.Run(name, func(t *testing.T) {
			test(start(t, append(with, func(set *settings) { set.postgres = postgres })...))
		})
	}
}

func start(t *testing.T, with ...func(*settings)) *server {
	t.Helper()
	set := settings{Config: api.Config{Grace: time.Second}}
	for _, w := range with {
		w(&set)
	}
	store, err := set.open(t)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	if set.wrap != nil {
		store = set.wrap(store)
	}
	local := functions.New(functions.Options{})
	functions.RegisterDemo(local)
	registry, err := workers.Open(t.Context(), store, workers.Options{Self: "here", Functions: local.Names})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, registry.Close(context.Background())) })
	reader := persistence.NewReader(store, flow.Limits{})
	engine, err := actors.Start(t.Context(), actors.Config{Store: store, Reader: reader,
		Name: "here", Lease: time.Hour, IdleAfter: set.idle,
		Retention: -1, // tests store tasks that ended long ago
		Carriers:  map[flow.ExecType]actors.Carrier{flow.ExecFunc: local, flow.ExecPush: registry}})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, engine.Stop(ctx))
	})
	s := &server{T: t, store: store, engine: engine, registry: registry,
		http: &http.Client{Transport: &http.Transport{}, Timeout: 2 * deadline}}
	t.Cleanup(s.http.CloseIdleConnections)
	from := api.Member{Engine: engine, Store: store, Reader: reader, Registry: registry, Logger: set.v1Logger}
	if set.registry != nil {
		from.Registry = set.registry(registry)
	}
	if set.asked != nil {
		from.Engine = set.asked(engine)
	}
	routes, err := v1.New(v1.Config{Member: from, Version: "1.2.3", StoreKind: "sqlite",
		Name: "here", Cluster: &pair{}, Heartbeat: set.heartbeat, Patience: set.patience, BeginFor: set.begin,
		Channels: map[string]socket.Channel{"pgflow:run": pgflowhttp.Runs{Engine: engine, Store: store, Reader: reader}.Tell}})
	require.NoError(t, err)
	from.Logger = set.Logger
	set.Member, set.Families = from, []api.Family{pocketflowhttp.New(from), pgflowhttp.New(from), routes}
	shell, err := api.New(set.Config)
	require.NoError(t, err)
	s.serve(shell, set.listen)
	return s
}

func (s *server) serve(shell *api.Server, wrap func(net.Listener) net.Listener) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s, err)
	if wrap != nil {
		l = wrap(l)
	}
	s.base = "http://" + l.Addr().String()
	ctx, leave := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- shell.Serve(ctx, l) }()
	s.Cleanup(func() {
		leave()
		require.NoError(s, <-done)
	})
}

// deadline of everything a test waits for.
const deadline = time.Minute

// sent is an answer as it was received.
type sent struct {
	status int
	header http.Header
	body   []byte
}

// send sends texts unchanged and everything else as JSON.
func (s *server) send(method, path string, body any, headers ...string) sent {
	s.Helper()
	var r io.Reader
	kind := "application/json"
	switch body := body.(type) {
	case nil:
		kind = ""
	case string:
		r = strings.NewReader(body)
	default:
		b, err := json.Marshal(body)
		require.NoError(s, err)
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(s.Context(), method, s.base+path, r)
	require.NoError(s, err)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.http.Do(req)
	require.NoError(s, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	return sent{resp.StatusCode, resp.Header, b}
}

// call requires a status and returns the decoded answer.
func (s *server) call(status int, method, path string, body any, headers ...string) obj {
	s.Helper()
	a := s.send(method, path, body, headers...)
	require.Equal(s, status, a.status, "%s %s: %s", method, path, a.body)
	var v obj
	require.NoError(s, json.Unmarshal(a.body, &v), "%s %s: %s", method, path, a.body)
	return v
}

func (s *server) get(path string) obj {
	s.Helper()
	return s.call(200, "GET", path, nil)
}

// refused requires a problem with this status and place, and with advice.
func (s *server) refused(status int, where, method, path string, body any, headers ...string) obj {
	s.Helper()
	a := s.send(method, path, body, headers...)
	require.Equal(s, status, a.status, "%s %s: %s", method, path, a.body)
	require.Equal(s, "application/problem+json", a.header.Get("Content-Type"))
	var p obj
	require.NoError(s, json.Unmarshal(a.body, &p))
	require.Equal(s, float64(status), p["status"], "%s", a.body)
	require.Equal(s, where, orEmpty(p["field"]), "%s", a.body)
	for _, part := range []string{"type", "title", "detail", "message", "hint", "code", "request_id"} {
		require.NotEmpty(s, p[part], "%s: %s", part, a.body)
	}
	require.Equal(s, "urn:troupe:error:"+p["code"].(string), p["type"], "%s", a.body)
	return p
}

func orEmpty(v any) string {
	text, _ := v.(string)
	return text
}

func items(v obj) []obj {
	list := []obj{}
	for _, o := range v["items"].([]any) {
		list = append(list, o.(obj))
	}
	return list
}

// values returns one field of all items.
func values(v obj, name string) []any {
	list := []any{}
	for _, o := range items(v) {
		list = append(list, o[name])
	}
	return list
}

// unique returns a name that no other part of a test uses.
func (s *server) unique(what string) string { return fmt.Sprintf("%s-%d", what, s.names.Add(1)) }

// publish creates a flow from a definition, JSON or YAML, and returns its slug.
func (s *server) publish(definition string) string {
	s.Helper()
	slug, kind := s.unique("flow"), "application/json"
	if !strings.HasPrefix(definition, "{") {
		kind = "application/yaml"
	}
	s.call(201, "PUT", "/v1/flows/"+slug, definition, "Content-Type", kind)
	return slug
}

// task starts a task of a new flow and returns its id.
func (s *server) task(definition string, params ...any) string {
	s.Helper()
	body := obj{"flow": s.publish(definition)}
	if len(params) > 0 {
		body["params"] = params[0]
	}
	return s.call(201, "POST", "/v1/tasks", body)["id"].(string)
}

func (s *server) ended(task, state string) obj {
	s.Helper()
	t := s.get("/v1/tasks/" + task + "?wait_ms=" + strconv.Itoa(int(deadline.Milliseconds())))
	require.Equal(s, state, t["state"], "%v", t)
	return t
}

// until reads a path until ok accepts the answer.
func (s *server) until(path string, ok func(obj) bool) obj {
	s.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(5 * time.Millisecond) {
		v := s.get(path)
		if ok(v) {
			return v
		}
		require.True(s, time.Now().Before(end), "%s never was as wanted: %v", path, v)
	}
}

// Flows of tests.
const (
	atOnce     = `{"start":"x","nodes":{"x":{"kind":"choice","default_action":"done"}}}`
	waits      = `{"start":"w","nodes":{"w":{"kind":"wait_event","params":{"signal_key":"$shared.go"},"post":{"output_key":"got"}}}}`
	queued     = `{"start":"q","nodes":{"q":{"service":"paint","exec_type":"queue","prep":{"input_key":"$params.color"},"post":{"output_key":"painted"}}}}`
	unknownKey = "no-such-thing"
)
