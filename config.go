package troupe

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/carriers/external"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/member/layers"
	"github.com/troupe-engine/troupe/persistence"
)

// Config holds the settings of a member. The zero value is a member on the SQLite file troupe.db
// that does not listen; every field has a useful default.
type Config struct {
	// Store is the database that holds everything: "sqlite:PATH" or a "postgres://" URL.
	Store string
	// Schema is the schema on PostgreSQL; it is created if it does not exist. Other objects of the
	// database are left alone, and members with another schema form another cluster. Default
	// "troupe".
	Schema string
	// Name is the name of the member in logs and in the list of workers. Default: "troupe-" and the
	// host's name.
	Name string

	// Listen is the address the HTTP API listens on when Serve is called without a listener.
	Listen string
	// Listener is an open listener on that address, see the function Listen. The caller promises to
	// call Serve later.
	Listener net.Listener
	// UI is the handler of the web pages below /ui/: ui.Handler() of package api/ui. Default: there
	// are no pages, and their files are not linked into your program.
	UI http.Handler
	// Tokens let callers in, as "Authorization: Bearer …". Without tokens, every caller that
	// reaches the address is let in.
	Tokens []string
	// Insecure allows an address other than loopback without tokens.
	Insecure bool
	// TLSCert and TLSKey are PEM files of a certificate and its key: with them the HTTP API accepts
	// TLS only. They are read again when they change. TLSClientCA is a PEM file of certificate
	// authorities: with it every client except a probe needs a certificate that they have signed.
	TLSCert, TLSKey, TLSClientCA string
	// CA is a PEM file of certificate authorities. They verify servers that this member calls, such
	// as push workers with https URLs. Default: those of the system.
	CA string
	// AllowOrigins and AllowHosts are web origins and host names that may be used besides the local
	// ones.
	AllowOrigins, AllowHosts []string
	// WorkerNetworks are the networks that the URLs of push workers may point to, besides loopback.
	WorkerNetworks []netip.Prefix

	// Cluster is the name of the cluster. Members with the same PostgreSQL store are one cluster,
	// and all have the same name for it. Default "troupe".
	Cluster string
	// Advertise is the URL where other members reach this one. Default: the URL of Listen, if it
	// names a host. A member that starts before Serve is called, and has no Listener, is reached on
	// a free port of that host. A member that does not listen is reached from its own host only.
	Advertise string
	// Gossip is the HOST:PORT where this member receives gossip. Default: the host of Listen and
	// port 8071, or a free port when that is taken. Join lists members to contact first, as
	// HOST:PORT; if empty, the members known to the store.
	Gossip string
	Join   []string
	// GossipKeyFile holds the keys that encrypt gossip. ClusterSecretFile holds the secret by which
	// members authenticate to each other. All members have the same files. Both are needed beyond
	// this host, unless Insecure is set.
	GossipKeyFile, ClusterSecretFile string
	// GossipProfile sets how soon a silent member is noticed: "fast" (default) or "lan".
	GossipProfile string
	// Lease is how long a member may be silent before the others take over its tasks. It is the
	// same for all members of a cluster. Default 2 s; from 1 s to 10 min.
	Lease time.Duration

	// AllowScripts allows flows to start programs on this host. ScriptDir is the directory in which
	// they run and which their work_dir cannot leave; "" is the directory of this process, and no
	// bound.
	AllowScripts bool
	ScriptDir    string
	// OrkWorkers is a file that defines the workers which Ork workflows may name. It is read again
	// for each workflow. Default: the workers.yaml beside the workflow.
	OrkWorkers string
	// ChildEnv names the variables of this process's environment that scripts get, besides PATH,
	// HOME, LANG, LC_*, TZ, TMPDIR and USER.
	ChildEnv []string

	// SecretEnv names variables of this process's environment that are secrets for flows; SecretDir
	// is a directory whose files are such secrets. A program gets a secret by its name. A flow that
	// names any other secret cannot be published. The values appear in no event, log or answer.
	SecretEnv []string
	SecretDir string
	// Secrets are further secrets by name. Each is read whenever it is needed.
	Secrets map[string]ReadSecret

	// ObjectStore is a URL for files by which members exchange jobs and results with workers that
	// cannot reach a member: file:///FOLDER, or a URL with a scheme that Buckets opens. All members
	// of a cluster have the same. "" = none.
	ObjectStore string
	// ObjectStoreRetention is how long these files are kept after their task has ended. Default: as
	// long as the task.
	ObjectStoreRetention time.Duration
	// PayloadStore is the URL where values of more than PayloadThreshold bytes are kept, so that
	// the store holds references to them: file:///FOLDER, or a URL with a scheme that Buckets
	// opens. All members of a cluster have the same. A cluster that had one keeps it, because its
	// tasks refer to it. "" = all values are in the store. PayloadThreshold is 64 KiB by default.
	PayloadStore     string
	PayloadThreshold int
	// Buckets are the functions that open object stores, by the scheme of their URL. The scheme
	// file is built in.
	Buckets map[string]OpenBucket
	// AllowContainers allows flows to run programs in containers. ContainerHost is the address of
	// Docker or Podman, such as unix:///run/podman/podman.sock or tcp://127.0.0.1:2375; "" = the
	// value of DOCKER_HOST, or Docker's default. All members of a cluster have the same.
	AllowContainers bool
	ContainerHost   string
	// RegistryAuthFile holds the credentials for pulling images, by registry, in the form of
	// Docker's config.json or Podman's auth.json. It is read again for each image, and it applies
	// to the images of all flows. Default: images are pulled without credentials.
	RegistryAuthFile string
	// ContainerNetworks are the networks that flows may use for their containers, besides none and
	// the container host's default. Default: any network except host, because host exposes services
	// that listen only on that host.
	ContainerNetworks []string
	// Containers is how many containers of all members run at once on the container host. Default
	// 64.
	Containers int

	// Starters start the jobs of nodes with exec_type external, by the name of their service.
	Starters map[string]Starter
	// Trackers follow external jobs that tasks wait for, by the name of their service: see deferred
	// in the documentation. Trackers for custom_http and object_store are built in, and so is a
	// starter for the latter.
	Trackers map[string]Tracker
	// Services both start and follow external jobs, with the tools of the member such as its log
	// and its object store.
	Services map[string]OpenService
	// PollNetworks are the networks that URLs of custom_http may point to. Default: none, not even
	// loopback. AllowMock allows mock:// URLs, which stand for test jobs.
	PollNetworks []netip.Prefix
	AllowMock    bool

	// Limits keep one task from harming the others. Zero fields have the values of
	// flow.DefaultLimits.
	Limits flow.Limits
	// Functions, Scripts and Calls are how many jobs of each kind this member runs at once: 256 of
	// each by default.
	Functions, Scripts, Calls int
	// KeepWarm is how long a function that is a flow stays in memory while it waits, so that it
	// goes on without a replay. Default 5 s; a negative one means not at all. At most 1,000 stay.
	KeepWarm time.Duration
	// JobLease is how long a pull worker may hold a job without a heartbeat. Default 60 s.
	JobLease time.Duration
	// IdleAfter is how long a task that only waits is kept in memory. Default 3 s.
	IdleAfter time.Duration
	// WorkerTTL is the time after the last heartbeat of a worker when it stops getting jobs.
	// Default 15 s.
	WorkerTTL time.Duration
	// StandbyWorkers are the ids of workers that get no job of a service while another live worker
	// offers it.
	StandbyWorkers []string
	// WorkerRefresh is how often heartbeats are written to the store. Default 5 s.
	WorkerRefresh time.Duration
	// ResumeGrace is how long the jobs of an attached worker wait for it after its stream breaks.
	// Default 5 s; negative = other workers get them at once.
	ResumeGrace time.Duration
	// MaxLog is how many characters of an attempt's output are kept, the newest ones. Default
	// 2,000,000.
	MaxLog int
	// MaxStreams is how many bytes the values of a task's streams may have. Default 64 MiB.
	MaxStreams int64
	// Retention is how long ended tasks are kept. Default 30 days; negative = forever.
	Retention time.Duration

	// Spans receives the spans of tasks, see package flow/trace, after the facts are stored.
	// Default: none.
	//
	// SpanRatio is the share of traces that are sent, chosen by trace id: default 1, negative =
	// none. A task that is started in a trace follows that trace's sampling flag; with
	// SpanRatioAlone the ratio applies to it as well. The spans of a task that fails are always
	// sent.
	Spans          Spans
	SpanRatio      float64
	SpanRatioAlone bool
	// TraceLinks gives every task a trace of its own, with a link to the caller's trace.
	TraceLinks bool
	// TraceURL and LogURL are the URLs of a task's trace and log lines, with {trace_id} and {task};
	// the web pages show them as links. "" = no links.
	TraceURL, LogURL string

	// NodeMetrics adds metrics of attempts per node, for the first 500 nodes of all flows that a
	// member meets.
	NodeMetrics bool

	// Logger receives log records. They name things and never hold their content. Default: no logs.
	Logger *slog.Logger
}

// checkScriptDir checks the directory for scripts at the start; otherwise every script would fail
// later.
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

// Tracker follows external jobs of a service: jobs of another system that tasks wait for.
type Tracker = actors.Tracker

// Starter starts jobs in another system.
type Starter = external.Starter

// ReadSecret reads a secret.
type ReadSecret = func() ([]byte, error)

type (
	// OpenService opens a Service with the tools of the member that uses it.
	OpenService = external.Open
	// Service starts jobs in another system and follows them until they end.
	Service = external.Service
	// ServiceTools are the tools that a member gives to a service: its clock, its log and its HTTP
	// client.
	ServiceTools = external.Tools
)

type (
	// External is a job in another system.
	External = flow.External
	// ExternalStatus is the state of such a job.
	ExternalStatus = flow.ExternalStatus
)

// ErrTaken reports that another member uses the store.
var ErrTaken = persistence.ErrTaken

// OpenStore opens the store of a setting: "sqlite:PATH", or a "postgres://" URL with a schema;
// schema "" is "troupe".
func OpenStore(ctx context.Context, setting, schema string) (persistence.Store, error) {
	return layers.OpenStore(ctx, setting, schema, slog.New(slog.DiscardHandler))
}

// StoreName returns the part of a store's setting that may be shown: it holds no password.
func StoreName(setting string) string { return layers.StoreName(setting) }

// storeTimes are the waits and ages of the layers of the store.
var storeTimes = layers.DefaultTimes()

func (c *Config) storeOptions() layers.Options {
	return layers.Options{Store: c.Store, Schema: c.Schema, Limits: c.Limits, Buckets: c.Buckets, Logger: c.Logger,
		FileStore: c.ObjectStore, FilesKeep: c.ObjectStoreRetention,
		PayloadStore: c.PayloadStore, PayloadThreshold: c.PayloadThreshold, Times: storeTimes}
}

// checkListen rejects addresses that unknown clients could use. Client certificates (TLSClientCA)
// count as authentication.
func (c *Config) checkListen(addr string) error {
	return api.CheckListen(addr, c.Tokens, c.Insecure || c.TLSClientCA != "")
}

// Scheme returns the URL scheme of the HTTP API: "https" or "http".
func (c *Config) Scheme() string {
	if c.TLSCert != "" {
		return "https"
	}
	return "http"
}

// Listen opens the address of a Config, unless unknown clients could use it. The listener is for
// Serve. A program that must know of a taken port before it resumes tasks calls Listen first, and
// sets Config.Listener.
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
