package blackbox

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/ui"
	v1 "github.com/troupe-engine/troupe/api/v1"
	"github.com/troupe-engine/troupe/carriers/external"
	"github.com/troupe-engine/troupe/carriers/functions"
	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/carriers/programs"
	"github.com/troupe-engine/troupe/carriers/scripts"
	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/dialect/ork/orkhttp"
	"github.com/troupe-engine/troupe/dialect/pgflow/pgflowhttp"
	"github.com/troupe-engine/troupe/dialect/pocketflow/pocketflowhttp"
	"github.com/troupe-engine/troupe/flow"
	stored "github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/internal/secrets"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/member/schedules"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// storeKind is a store that the checks run against.
type storeKind string

const (
	sqliteStore storeKind = "sqlite"
	// one member; long checks use only the cluster's PostgreSQL
	postgresStore storeKind = "postgres"
	// three members on one PostgreSQL; requests go to them in turn
	clusterStore storeKind = "cluster"
)

// place returns the address of a new, empty store: a file or a DSN.
func (k storeKind) place(t *testing.T) string {
	if k == sqliteStore {
		return filepath.Join(t.TempDir(), "troupe.db")
	}
	return pgtest.DSN(t)
}

func (k storeKind) open(ctx context.Context, place string) (persistence.Store, error) {
	if k == sqliteStore {
		return sqlite.Open(ctx, place, sqlite.Options{})
	}
	return postgres.Open(ctx, place, postgres.Options{})
}

// plant stores seeds before members use the store.
func (k storeKind) plant(ctx context.Context, place string, seed []seeding) error {
	if len(seed) == 0 {
		return nil
	}
	store, err := k.open(ctx, place)
	if err != nil {
		return err
	}
	for _, s := range seed {
		err = errors.Join(err, s.plant(ctx, store))
	}
	return errors.Join(err, store.Close())
}

// host is the server that the checks run against.
type host interface {
	urls() []string
	complaints() *complaints
	stop() error // stops gracefully
}

// startHost starts the members of a kind in this process.
func startHost(ctx context.Context, kind storeKind, place string, lease time.Duration) (host, error) {
	if kind == clusterStore {
		return startTrio(ctx, place, lease)
	}
	return startMember(ctx, kind, place, lease)
}

// member holds all parts of one member.
type member struct {
	store    persistence.Store
	engine   *actors.Member
	registry *workers.Registry
	logs     *logs.Book
	timed    *schedules.Runner
	base     string
	leave    context.CancelFunc
	served   chan error
	said     *complaints
	payloads *payload.Store
}

// complaints collects and prints a member's log lines of level warning and above.
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

// The lease of a member that is killed must run out soon, because its successor waits for it. Other
// members must refuse no work, however busy the machine is.
const (
	shortLease   = 5 * time.Second
	patientLease = 5 * time.Minute
)

// exampleSecrets is the folder of the secrets that example workflows use.
const exampleSecrets = "../../examples/ork/secrets"

// thisHost is the network of the external systems that the checks start.
var thisHost = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// largeElsewhere stores values of more bytes than TROUPE_TEST_PAYLOAD_OVER outside the store;
// without the variable none. Every check must pass with any number.
func largeElsewhere(ctx context.Context, store persistence.Store) (*payload.Store, error) {
	over, err := strconv.Atoi(os.Getenv("TROUPE_TEST_PAYLOAD_OVER"))
	if err != nil {
		return nil, nil
	}
	secret, err := store.Secret(ctx)
	if err != nil {
		return nil, err
	}
	bucket, err := stored.OpenDir(filepath.Join(os.Getenv(objectsPlace), "payloads"))
	return payload.New(payload.Options{Bucket: bucket, Secret: secret, Over: over, Most: 64 << 20}), err
}

func startMember(ctx context.Context, kind storeKind, place string, lease time.Duration) (*member, error) {
	said := &complaints{}
	log := slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	opened, err := kind.open(ctx, place)
	if err != nil {
		return nil, err
	}
	store := persistence.Newest(opened, time.Now)
	m := &member{store: store, served: make(chan error, 1), said: said, logs: logs.New(logs.Options{Store: store, Logger: log})}
	payloads, err := largeElsewhere(ctx, store)
	if err != nil {
		return nil, err
	}
	m.payloads = payloads
	demo := functions.New(functions.Options{})
	functions.RegisterDemo(demo)
	m.registry, err = workers.Open(ctx, store, workers.Options{Self: "blackbox", Functions: demo.Names, Logger: log})
	if err != nil {
		return nil, err
	}
	reader := persistence.NewReader(store, flow.Limits{})
	var elsewhere actors.Payloads
	if payloads != nil {
		reader.Keep(payloads)
		elsewhere = payloads
	}
	bucket, err := stored.OpenDir(os.Getenv(objectsPlace))
	if err != nil {
		return nil, err
	}
	files := external.NewObjects(external.ObjectsOptions{Bucket: bucket})
	known, err := secrets.Open(secrets.Options{Dir: exampleSecrets})
	if err != nil {
		return nil, err
	}
	started := programs.New(programs.Options{Allow: true, Logs: m.logs, Files: files, Options: program.Options{Secrets: known}})
	m.engine, err = actors.Start(ctx, actors.Config{Store: store, Reader: reader, Name: "blackbox", Logger: log, Payloads: elsewhere,
		Lease: lease, Workers: m.registry,
		Trackers: map[string]actors.Tracker{endlessService: endless, flow.ObjectStore: files,
			external.CustomHTTP: external.NewHTTP(external.Options{Networks: thisHost, Mock: true})},
		Carriers: map[flow.ExecType]actors.Carrier{
			flow.ExecPush: m.registry, flow.ExecFunc: demo,
			flow.ExecScript:  scripts.New(scripts.Options{Allow: true, Logs: m.logs}),
			flow.ExecProcess: started, flow.ExecPython: started, flow.ExecLibrary: started,
			flow.ExecWorker: m.registry.Executor(), flow.ExecExternal: external.Starters{flow.ObjectStore: files}.Carrier(),
		}})
	if err != nil {
		return nil, err
	}
	m.timed = schedules.Start(schedules.Options{Store: opened, Engine: m.engine, Shards: m.engine.Shards, Logger: log})
	store.Changed = func(context.Context, string) { m.timed.Look() }
	return m, m.serve(reader, started, known, log)
}

func (m *member) serve(reader *persistence.Reader, started *programs.Carrier, known *secrets.Store, log *slog.Logger) error {
	from := api.Member{Engine: m.engine, Store: m.store, Reader: reader, Registry: m.registry,
		Logs: m.logs, Payloads: m.payloads, Secret: known.Listed, Logger: log}
	typed, err := v1.New(v1.Config{Member: from, Version: "1.2.3", StoreKind: "any", Name: "blackbox",
		Channels: map[string]v1.Channel{"pgflow:run": pgflowhttp.Runs{Engine: m.engine, Store: m.store, Reader: reader}.Tell}})
	if err != nil {
		return err
	}
	server, err := api.New(api.Config{Member: from, Families: []api.Family{pocketflowhttp.New(from),
		orkhttp.New(from, orkhttp.Options{Programs: started}), pgflowhttp.New(from), typed},
		Pages: ui.Handler(), Grace: time.Second})
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

func (m *member) urls() []string          { return []string{m.base} }
func (m *member) complaints() *complaints { return m.said }

func (m *member) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	m.leave()
	m.timed.Stop()
	return errors.Join(<-m.served, m.engine.Stop(ctx), m.registry.Close(context.WithoutCancel(ctx)), m.logs.Close(ctx), m.store.Close())
}

// seeding is data in a store before its members start.
type seeding interface {
	plant(ctx context.Context, store persistence.Store) error
}

// silentSince is a push worker with an old last heartbeat.
type silentSince struct {
	age         time.Duration
	id, service string
}

func (s silentSince) plant(ctx context.Context, store persistence.Store) error {
	then := time.Now().Add(-s.age).UnixMilli()
	return store.PutWorker(ctx, persistence.Worker{ID: s.id, URL: "http://127.0.0.1:1", Type: "http",
		Services: []string{s.service}, LastHeartbeat: then, RegisteredAt: then})
}

// server is the server that a check uses.
type server struct {
	kind    storeKind
	members *atomic.Pointer[[]string] // their URLs
	turn    atomic.Uint64
	said    *complaints // of members in this process
}

func newServer(kind storeKind) *server {
	return &server{kind: kind, members: &atomic.Pointer[[]string]{}}
}

// apart returns the same server with a turn of its own, for another client.
func (s *server) apart() *server { return &server{kind: s.kind, members: s.members, said: s.said} }

// url returns the URL of the next member.
func (s *server) url() string {
	members := *s.members.Load()
	return members[s.turn.Add(1)%uint64(len(members))]
}

// startServer runs members in this process until the test ends.
func startServer(t *testing.T, kind storeKind, seed ...seeding) *server {
	t.Helper()
	place := kind.place(t)
	require.NoError(t, kind.plant(t.Context(), place, seed))
	h, err := startHost(t.Context(), kind, place, patientLease)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.stop()) })
	s := newServer(kind)
	s.said = h.complaints()
	urls := h.urls()
	s.members.Store(&urls)
	return s
}

// aloneAndTogether runs a check on a single member and on a cluster, which it does not share.
func aloneAndTogether(t *testing.T, check func(*testing.T, *client)) {
	t.Parallel()
	for _, kind := range []storeKind{sqliteStore, clusterStore} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			check(t, newClient(t, startServer(t, kind)))
		})
	}
}

// Environment of this program when it is started again as a server that can be killed.
const (
	serveKind  = "BLACKBOX_SERVE"
	servePlace = "BLACKBOX_PLACE"
)

// objectsPlace is the variable with the folder for workers that communicate by files. All servers
// share it, because runs have unique ids.
const objectsPlace = "BLACKBOX_OBJECTS"

func TestMain(m *testing.M) {
	if kind := os.Getenv(serveKind); kind != "" {
		os.Exit(serveUntilKilled(storeKind(kind), os.Getenv(servePlace)))
	}
	os.Exit(withObjects(func() int { return pgtest.Main(m) }))
}

func withObjects(run func() int) int {
	folder, err := os.MkdirTemp("", "blackbox-objects-")
	if err == nil {
		err = os.Setenv(objectsPlace, folder)
	}
	flag.Parse()
	err = errors.Join(err, flag.Set("test.parallel", "3")) // checks mostly wait
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder) // an error leaves only temporary files
	return run()
}

func serveUntilKilled(kind storeKind, place string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	h, err := startHost(ctx, kind, place, shortLease)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("serving " + strings.Join(h.urls(), " "))
	<-ctx.Done()
	return 0
}

// process is a server process of a single check.
type process struct {
	*server
	place string
	cmd   *exec.Cmd
}

// startProcess starts a server that kill ends like a crash.
func startProcess(t *testing.T, kind storeKind) *process {
	t.Helper()
	p := &process{server: newServer(kind), place: kind.place(t)}
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
	urls := strings.Fields(strings.TrimPrefix(line, "serving "))
	p.members.Store(&urls)
}

// end kills the process without a warning.
func (p *process) end(t *testing.T) {
	t.Helper()
	if p.cmd == nil {
		return
	}
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // "signal: killed" is expected
	p.cmd = nil
}

// restart kills the members and starts new ones on the same store.
func (p *process) restart(t *testing.T) {
	t.Helper()
	p.end(t)
	p.start(t)
}
