package troupe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/actors/external"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// Config says how a member works. The zero value is a member on the SQLite file troupe.db that
// listens nowhere; every field has a useful default.
type Config struct {
	// Store is where everything is kept: "sqlite:PATH" or a "postgres://" URL.
	Store string
	// Schema is where on PostgreSQL, which is created if it is not there: what else the database
	// has is left alone, and members with another schema are another cluster. Default "troupe".
	Schema string
	// Name of the member, in logs and in the list of workers. Default: "troupe-" and the host's
	// name.
	Name string

	// Listen is the address the HTTP API listens on when Serve is called without a listener.
	Listen string
	// Listener is one of that address that is open already, see the function Listen; Serve is to
	// come.
	Listener net.Listener
	// UI serves the pages for people with a browser, below /ui/: that of package api/ui,
	// ui.Handler(). Default: there are none, and nothing of them is in your program.
	UI http.Handler
	// Tokens that let callers in, as "Authorization: Bearer …". None = everybody who reaches the
	// address.
	Tokens []string
	// Insecure allows an address other than loopback without tokens.
	Insecure bool
	// TLSCert and TLSKey are PEM files of a certificate and its key: with them the HTTP API speaks
	// TLS only. They are read again when they change. TLSClientCA is one of authorities: with it
	// every client but a probe needs a certificate of theirs.
	TLSCert, TLSKey, TLSClientCA string
	// CA is a PEM file of authorities that servers which this member calls are checked against,
	// such as push workers with https URLs. Default: the system's.
	CA string
	// AllowOrigins and AllowHosts name web pages and host names that may be used besides the local
	// ones.
	AllowOrigins, AllowHosts []string
	// WorkerNetworks are the networks that URLs of push workers may be in, besides loopback.
	WorkerNetworks []netip.Prefix

	// Cluster is the name of the cluster: members with the same store of PostgreSQL are one, and
	// have the same name for it. Default "troupe".
	Cluster string
	// Advertise is the URL under which other members reach this one. Default: that of Listen, if it
	// names a host. A member that has begun before Serve is called, and has no Listener, is reached
	// on a free port of that host; one that listens nowhere on its own host alone.
	Advertise string
	// Gossip is the HOST:PORT where this member hears of others. Default: the host of Listen, port
	// 8071 or, when that is taken, a free one. Join names members to begin with, as HOST:PORT; none
	// = those that the store knows.
	Gossip string
	Join   []string
	// GossipKeyFile has the keys that gossip is encrypted with, ClusterSecretFile the secret that
	// members prove themselves with to each other: all members have the same. Both are needed
	// beyond this host, unless Insecure.
	GossipKeyFile, ClusterSecretFile string
	// GossipProfile says how soon a silent member is noticed: "fast" (default) or "lan".
	GossipProfile string
	// Lease is how long a member may be silent before the others take its tasks over, the same for
	// all members of a cluster. Default 2 s; from 1 s to 10 min.
	Lease time.Duration

	// AllowScripts lets flows start programs on this host. ScriptDir is where they run and what
	// their work_dir may not leave; "" = the folder this process runs in, and anywhere.
	AllowScripts bool
	ScriptDir    string
	// OrkWorkers is a file that says what tasks of Ork's workflows may use that name a worker; it
	// is read anew for each workflow. Default: the workers.yaml beside the workflow.
	OrkWorkers string
	// ChildEnv names the variables that scripts see of this process's environment, besides PATH,
	// HOME, LANG, LC_*, TZ, TMPDIR and USER.
	ChildEnv []string

	// SecretEnv names variables of this process's environment, and SecretDir is a folder with
	// files, that are secrets for flows: a program is given one by its name. Any other is refused
	// when a flow is published. Their values are in no event, log or answer.
	SecretEnv []string
	SecretDir string
	// Secrets are further ones by their names, which are read when they are needed, each time.
	Secrets map[string]ReadSecret

	// ObjectStore is the URL of where workers that know nothing else of a member find what they
	// have to do, and say how it is, in files: file:///FOLDER, or one of a scheme that Buckets
	// opens. All members of a cluster have the same. "" = none.
	ObjectStore string
	// ObjectStoreKeep is how long these files stay when their task has ended. Default: as long as
	// the task.
	ObjectStoreKeep time.Duration
	// PayloadStore is the URL of where values of more than PayloadOver bytes are kept, so that the
	// store holds references to them: file:///FOLDER, or one of a scheme that Buckets opens. All
	// members of a cluster have the same, and one that had it once keeps it: its tasks refer to it.
	// "" = all values are in the store. PayloadOver is 64 KiB by default.
	PayloadStore string
	PayloadOver  int
	// Buckets open object stores by the scheme of their URL. Those of file are opened anyway.
	Buckets map[string]OpenBucket
	// AllowContainers lets flows have programs run in containers. ContainerHost is who runs them,
	// such as unix:///run/podman/podman.sock or tcp://127.0.0.1:2375, Docker or Podman: "" = what
	// DOCKER_HOST says, or Docker's own place. All members of a cluster have the same.
	AllowContainers bool
	ContainerHost   string
	// RegistryAuthFile says as whom images are fetched, by registry, in the form of Docker's
	// config.json or Podman's auth.json; it is read anew for each image, and every flow's images
	// are fetched so. Default: as nobody in particular.
	RegistryAuthFile string
	// ContainerNetworks are the networks that flows may have their containers in, beside none and
	// the container host's default. Default: any but host, which shows them the services that
	// listen on that host alone.
	ContainerNetworks []string
	// Containers is how many run at once on the container host, of all members. Default 64.
	Containers int

	// Starters begin the jobs of nodes with exec_type outside, by the name of their service.
	Starters map[string]Starter
	// Trackers look after work outside that tasks wait for, by the name of its service: see
	// deferred in the documentation. There are those for custom_http and object_store already, and
	// a starter for the latter.
	Trackers map[string]Tracker
	// Services do both with what the member has, such as its log and its object store.
	Services map[string]OpenService
	// PollNetworks are the networks that URLs of custom_http may be in. Default: none, not even
	// loopback. AllowMock allows URLs with mock://, which mean jobs that are there for tests.
	PollNetworks []netip.Prefix
	AllowMock    bool

	// Limits keep one task from harming the others. Zero fields mean flow.DefaultLimits.
	Limits flow.Limits
	// Concurrency is how many jobs of a kind this member carries out at once: 256 of each by
	// default.
	Functions, Scripts, Calls int
	// Visibility is how long a poller may hold a job without a heartbeat. Default 60 s.
	Visibility time.Duration
	// IdleAfter is how long a task that only waits stays in memory. Default 3 s.
	IdleAfter time.Duration
	// WorkerTTL is how long after its last heartbeat a worker gets no more jobs. Default 15 s.
	WorkerTTL time.Duration
	// StandbyWorkers are the ids of workers that get no job of a service which another live worker
	// offers.
	StandbyWorkers []string
	// WorkerRefresh is how often heartbeats are written down. Default 5 s.
	WorkerRefresh time.Duration
	// ResumeGrace is how long the jobs of an attached worker wait for it when its stream breaks.
	// Default 5 s; negative = others get them at once.
	ResumeGrace time.Duration
	// MaxLog is how many characters of what an attempt prints are kept, the newest. Default
	// 2,000,000.
	MaxLog int
	// Retention is how long ended tasks are kept. Default 30 days; negative = for ever.
	Retention time.Duration

	// Spans take what tasks have done as spans, see package flow/trace, once it is stored. Default:
	// nobody does. SpanRatio is of how many traces they are told, by the ids of the traces: default
	// 1, negative = of none. Those of a task that is started in a trace are told if that is
	// sampled, unless SpanRatioAlone says that the ratio counts for it, too; those of a task that
	// fails are told anyway.
	Spans          Spans
	SpanRatio      float64
	SpanRatioAlone bool
	// TraceLinks gives every task a trace of its own, which points to that of whoever started it.
	TraceLinks bool
	// TraceURL and LogURL are where people see the trace and the log lines of a task: URLs with
	// {trace_id} and {task}, which the pages make links of. "" = nowhere.
	TraceURL, LogURL string

	// NodeMetrics has metrics tell attempts by node, too: of the first 500 nodes that a member
	// comes across, of all flows together.
	NodeMetrics bool

	// Logger hears what happens, never what is in it. Default: nobody does.
	Logger *slog.Logger
}

// checkScriptDir finds out at the start what would fail every script.
func (c *Config) checkScriptDir() error {
	if !c.AllowScripts || c.ScriptDir == "" {
		return nil
	}
	info, err := os.Stat(c.ScriptDir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", c.ScriptDir)
	}
	if err != nil {
		return fmt.Errorf("the folder for scripts cannot be used: %w", err)
	}
	return nil
}

// Tracker looks after work outside that a service carries out: jobs of another system, which tasks
// wait for.
type Tracker = actors.Tracker

// Starter begins jobs in another system.
type Starter = external.Starter

// ReadSecret reads a secret.
type ReadSecret = func() ([]byte, error)

type (
	// OpenService opens a Service with the tools of the member that uses it.
	OpenService = external.Open
	// Service begins jobs in another system and follows them until they end.
	Service = external.Service
	// ServiceTools are what a member gives to a service: its clock, its log and its HTTP client.
	ServiceTools = external.Tools
)

type (
	// External is a job in another system.
	External = flow.External
	// ExternalStatus is the state of such a job.
	ExternalStatus = flow.ExternalStatus
)

// ErrTaken means that another member lives on the store.
var ErrTaken = persistence.ErrTaken

// OpenStore opens the store that a setting names: "sqlite:PATH", or a "postgres://" URL and a
// schema there; "" = "troupe".
func OpenStore(ctx context.Context, setting, schema string) (persistence.Store, error) {
	return openStore(ctx, setting, schema, slog.New(slog.DiscardHandler))
}

func openStore(ctx context.Context, setting, schema string, log *slog.Logger) (persistence.Store, error) {
	path, isFile := strings.CutPrefix(setting, "sqlite:")
	switch {
	case schema != "" && storeKind(setting) == "sqlite":
		return nil, fmt.Errorf("--schema %s: a store of SQLite has no schemas: leave it out, or use a store of PostgreSQL (--store postgres://…)", schema)
	case setting == "":
		return sqlite.Open(ctx, "troupe.db", sqlite.Options{})
	case isFile:
		if err := checkFile(path); err != nil {
			return nil, fmt.Errorf("store %q %w", setting, err)
		}
		return sqlite.Open(ctx, path, sqlite.Options{})
	case strings.HasPrefix(setting, "postgres://"), strings.HasPrefix(setting, "postgresql://"):
		return postgres.Open(ctx, setting, postgres.Options{Schema: schema, Log: log})
	}
	return nil, fmt.Errorf("store %q is neither sqlite:PATH nor a postgres:// URL", StoreName(setting))
}

// checkFile refuses what other programs write after "sqlite:" and what is no path here: it would
// become the name of a new, empty file.
func checkFile(path string) error {
	before, options, _ := strings.Cut(path, "?")
	switch {
	case path == "":
		return errors.New("names no file: write sqlite:PATH")
	case strings.Contains(path, ":memory:") || strings.Contains(options, "mode=memory"):
		return errors.New("would be in memory and lost with its member: write sqlite:PATH, for tests in a folder that is removed afterwards")
	case strings.Contains(options, "="):
		return fmt.Errorf("has options, and a member needs its file as it is, to be read and written: write sqlite:%s", before)
	case strings.HasPrefix(path, "file:"):
		return fmt.Errorf("has a URI: write the path alone, sqlite:%s", strings.TrimPrefix(before, "file:"))
	case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
		name := strings.TrimPrefix(path, "//")
		return fmt.Errorf("begins like a URL with a host: write sqlite:%s for a path from the present folder, or sqlite:/%[1]s", name)
	}
	return nil
}

// StoreName is what may be shown of a store's setting: it holds no password.
func StoreName(setting string) string {
	switch {
	case storeKind(setting) == "postgres":
		return postgres.Name(setting)
	case strings.HasPrefix(setting, "sqlite:") || !strings.ContainsAny(setting, "@=?"):
		return setting
	}
	return "…" // of no known kind: a password may be anywhere in it
}

// storeKind names the kind of store of a setting.
func storeKind(setting string) string {
	if strings.HasPrefix(setting, "postgres") {
		return "postgres"
	}
	return "sqlite"
}

// checkListen refuses addresses that strangers could use. Whose certificates are asked for are no
// strangers.
func (c *Config) checkListen(addr string) error {
	return api.CheckListen(addr, c.Tokens, c.Insecure || c.TLSClientCA != "")
}

// Scheme is how the HTTP API is addressed: "https" or "http".
func (c *Config) Scheme() string {
	if c.TLSCert != "" {
		return "https"
	}
	return "http"
}

// Listen opens the address that a Config names, unless strangers could use it. Its listener is for
// Serve: a program that wants to know of a taken port before it takes up tasks calls it first, and
// says so in the Config.
func Listen(cfg Config) (net.Listener, error) {
	if err := cfg.checkListen(cfg.Listen); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return listener, nil
}
