package blackbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/actors/funcs"
	"github.com/troupe-engine/troupe/actors/script"
	"github.com/troupe-engine/troupe/actors/workers"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/graph"
	"github.com/troupe-engine/troupe/api/pgflow"
	v1 "github.com/troupe-engine/troupe/api/v1"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/pgtest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// storeKind is a store that the checks are carried out against.
type storeKind string

const (
	sqliteStore   storeKind = "sqlite"
	postgresStore storeKind = "postgres"
)

// place makes a new, empty store's address: a file or a DSN.
func (k storeKind) place(t *testing.T) string {
	if k == postgresStore {
		return pgtest.DSN(t)
	}
	return filepath.Join(t.TempDir(), "troupe.db")
}

func (k storeKind) open(ctx context.Context, place string) (persistence.Store, error) {
	if k == postgresStore {
		return postgres.Open(ctx, place, postgres.Options{})
	}
	return sqlite.Open(ctx, place, sqlite.Options{})
}

// member is everything that runs behind one address, wired in one place.
type member struct {
	store    persistence.Store
	engine   *actors.Member
	registry *workers.Registry
	base     string
	leave    context.CancelFunc
	served   chan error
	said     *complaints
}

// complaints are what a member logs as a warning or worse. They are shown, too.
type complaints struct {
	mu   sync.Mutex
	text []byte
}

func (c *complaints) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, line...)
	return os.Stderr.Write(line)
}

func (c *complaints) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.text)
}

// A member that is to be killed is waited for by its successor; the others refuse no work, however busy the machine is.
const (
	shortLease   = 5 * time.Second
	patientLease = time.Hour
)

func startMember(ctx context.Context, kind storeKind, place string, lease time.Duration, seed ...seeding) (*member, error) {
	said := &complaints{}
	log := slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, err := kind.open(ctx, place)
	if err != nil {
		return nil, err
	}
	m := &member{store: store, served: make(chan error, 1), said: said}
	for _, s := range seed {
		if err := s.plant(ctx, store); err != nil {
			return nil, err
		}
	}
	demo := funcs.New()
	funcs.RegisterDemo(demo)
	m.registry, err = workers.Open(ctx, store, workers.Options{Self: "blackbox", Functions: demo.Names, Logger: log})
	if err != nil {
		return nil, err
	}
	reader := persistence.NewReader(store, flow.Limits{})
	m.engine, err = actors.Start(ctx, actors.Config{Store: store, Reader: reader, Name: "blackbox", Logger: log,
		Lease: lease, Workers: m.registry,
		Carriers: map[flow.ExecType]actors.Carrier{
			flow.ExecHTTP: m.registry, flow.ExecFunc: demo,
			flow.ExecScript: script.New(script.Options{Allow: true, Logs: store, Logger: log}),
		}})
	if err != nil {
		return nil, err
	}
	return m, m.serve(reader, log)
}

func (m *member) serve(reader *persistence.Reader, log *slog.Logger) error {
	from := api.Member{Engine: m.engine, Store: m.store, Reader: reader, Registry: m.registry, Logger: log}
	typed, err := v1.New(v1.Config{Member: from, Version: "1.2.3", StoreKind: "any", Name: "blackbox",
		Channels: map[string]v1.Channel{"pgflow:run": pgflow.Runs{Engine: m.engine, Store: m.store, Reader: reader}.Tell}})
	if err != nil {
		return err
	}
	server, err := api.New(api.Config{Member: from, Families: []api.Family{graph.New(from), pgflow.New(from), typed}, Grace: time.Second})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	m.base = "http://" + l.Addr().String()
	ctx, leave := context.WithCancel(context.Background())
	m.leave = leave
	go func() { m.served <- server.Serve(ctx, l) }()
	return nil
}

// stop leaves in order.
func (m *member) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	m.leave()
	return errors.Join(<-m.served, m.engine.Stop(ctx), m.registry.Close(context.WithoutCancel(ctx)), m.store.Close())
}

// seeding puts something into a store before its member starts.
type seeding interface {
	plant(ctx context.Context, store persistence.Store) error
}

// silentSince is a push worker that was last heard of some time ago.
type silentSince struct {
	age         time.Duration
	id, service string
}

func (s silentSince) plant(ctx context.Context, store persistence.Store) error {
	then := time.Now().Add(-s.age).UnixMilli()
	return store.PutWorker(ctx, persistence.Worker{ID: s.id, URL: "http://127.0.0.1:1", Type: "http",
		Services: []string{s.service}, LastHeartbeat: then, RegisteredAt: then})
}

// server is what checks talk to.
type server struct {
	kind storeKind
	base atomic.Pointer[string]
	said *complaints // of a member in this process
}

func (s *server) url() string { return *s.base.Load() }

// startServer runs a member in this process until the test ends.
func startServer(t *testing.T, kind storeKind, seed ...seeding) *server {
	t.Helper()
	m, err := startMember(t.Context(), kind, kind.place(t), patientLease, seed...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.stop()) })
	s := &server{kind: kind, said: m.said}
	s.base.Store(&m.base)
	return s
}

// Environment of this program when it is started again as a server that can be killed.
const (
	serveKind  = "BLACKBOX_SERVE"
	servePlace = "BLACKBOX_PLACE"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(serveKind); kind != "" {
		os.Exit(serveUntilKilled(storeKind(kind), os.Getenv(servePlace)))
	}
	os.Exit(pgtest.Main(m))
}

func serveUntilKilled(kind storeKind, place string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	m, err := startMember(ctx, kind, place, shortLease)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("serving " + m.base)
	<-ctx.Done()
	return 0
}

// process is a member in a process of its own.
type process struct {
	*server
	place string
	cmd   *exec.Cmd
}

// startProcess runs a server that kill ends as a crash would.
func startProcess(t *testing.T, kind storeKind) *process {
	t.Helper()
	p := &process{server: &server{kind: kind}, place: kind.place(t)}
	t.Cleanup(func() { p.end(t) })
	p.start(t)
	return p
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serveKind+"="+string(p.kind), servePlace+"="+p.place)
	p.cmd.Stderr = os.Stderr
	endWithParent(p.cmd)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "the server did not start")
	base := strings.TrimSpace(strings.TrimPrefix(line, "serving "))
	p.base.Store(&base)
}

// end kills the process; it gets no chance to say anything.
func (p *process) end(t *testing.T) {
	t.Helper()
	if p.cmd == nil {
		return
	}
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // "signal: killed" is what was asked for
	p.cmd = nil
}

// restart kills the server and starts another one on the same store.
func (p *process) restart(t *testing.T) {
	t.Helper()
	p.end(t)
	p.start(t)
}
