package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/ui"
	"github.com/troupe-engine/troupe/flow"
)

// memberFlags holds the settings of a member. Each has a flag and an environment variable.
type memberFlags struct {
	Store  string `env:"TROUPE_STORE" placeholder:"SETTING" help:"Where everything is kept: sqlite:PATH or a postgres:// URL."`
	Schema string `env:"TROUPE_SCHEMA" placeholder:"NAME" help:"Schema of PostgreSQL that everything is kept in (troupe); it is created if it is not there."`
	Listen string `env:"TROUPE_LISTEN" default:"127.0.0.1:8070" placeholder:"ADDR" help:"Address of the HTTP API (${default})."`
	Name   string `env:"TROUPE_NAME,SCHEDULER_OWNER" help:"Name of the member in logs and in the list of workers."`

	Token           []string       `env:"TROUPE_TOKEN" sep:"none" group:"Access" help:"Let in callers with this bearer token; may be repeated."`
	TokenFile       string         `env:"TROUPE_TOKEN_FILE" type:"existingfile" group:"Access" help:"Let in callers with a token of this file, one a line."`
	Insecure        bool           `env:"TROUPE_INSECURE" group:"Access" help:"Listen beyond this host without tokens."`
	AllowOrigin     []string       `env:"TROUPE_ALLOW_ORIGIN" group:"Access" help:"Origins of web pages that may call besides those of this host; * = all."`
	AllowHost       []string       `env:"TROUPE_ALLOW_HOST" group:"Access" help:"Names this member is called by, besides its address; * = all."`
	WorkerNetwork   []netip.Prefix `env:"TROUPE_WORKER_NETWORK" placeholder:"CIDR" group:"Access" help:"Networks that push workers may be in, besides this host."`
	PollNetwork     []netip.Prefix `env:"TROUPE_POLL_NETWORK" placeholder:"CIDR" group:"Access" help:"Networks that deferred jobs of custom_http may be asked about in; none otherwise, not even this host."`
	AllowMock       bool           `env:"TROUPE_ALLOW_MOCK" group:"Access" help:"Let deferred jobs have mock:// URLs, which mean jobs for tests."`
	ObjectStore     string         `env:"TROUPE_OBJECT_STORE,ORK_OBJECT_STORE" placeholder:"URL" group:"Access" help:"Where workers that report by files (exec: {report: object_store}) find what they have to do: file:///FOLDER."`
	PayloadStore    string         `env:"TROUPE_PAYLOAD_STORE" placeholder:"URL" group:"Access" help:"Where large values are kept, so that the store holds references to them: file:///FOLDER."`
	PayloadOver     int            `env:"TROUPE_PAYLOAD_OVER" placeholder:"BYTES" group:"Access" help:"Values of more bytes are kept there (65536)."`
	ObjectStoreKeep time.Duration  `env:"TROUPE_OBJECT_STORE_KEEP" group:"Access" help:"How long these files stay when their task has ended; as long as the task otherwise."`
	AllowScripts    bool           `env:"TROUPE_ALLOW_SCRIPTS" group:"Access" help:"Let flows start programs on this host, as this user."`
	ScriptDir       string         `env:"TROUPE_SCRIPT_DIR" type:"path" group:"Access" help:"Folder that scripts and programs run in; they may not name a work_dir or root outside of it."`
	OrkWorkers      string         `env:"ORK_WORKERS_CONFIG" placeholder:"FILE" group:"Access" help:"What tasks of Ork's workflows may use that name a worker, in place of the workers.yaml beside them."`
	AllowContainers bool           `env:"TROUPE_ALLOW_CONTAINERS" group:"Access" help:"Let flows have programs run in containers."`
	ContainerHost   string         `env:"TROUPE_CONTAINER_HOST" placeholder:"URL" group:"Access" help:"Who runs containers, such as unix:///run/podman/podman.sock; what DOCKER_HOST says otherwise, or Docker's own place."`
	RegistryAuth    string         `name:"registry-auth-file" env:"TROUPE_REGISTRY_AUTH_FILE" type:"path" placeholder:"FILE" group:"Access" help:"As whom images of containers are fetched, by registry: a file like Docker's config.json; it is read anew for each image."`
	Networks        []string       `name:"container-networks" env:"TROUPE_CONTAINER_NETWORKS" placeholder:"NAME" group:"Access" help:"Networks that flows may have their containers in, beside none and the default one; any but host otherwise."`
	ChildEnv        []string       `env:"TROUPE_CHILD_ENV" placeholder:"NAME" group:"Access" help:"Variables that scripts see of the member's environment, besides PATH, HOME, LANG, LC_*, TZ, TMPDIR and USER."`
	SecretEnv       []string       `env:"TROUPE_SECRET_ENV" placeholder:"NAME" group:"Access" help:"Variables of the member's environment that are secrets which flows may name."`
	SecretDir       string         `env:"TROUPE_SECRET_DIR" type:"path" placeholder:"DIR" group:"Access" help:"Folder whose files are secrets which flows may name; they are read anew for each attempt."`

	MaxDepth      int            `env:"TROUPE_MAX_DEPTH" group:"Limits" help:"Scopes within each other (16)."`
	MaxUnits      int            `env:"TROUPE_MAX_UNITS" group:"Limits" help:"Units of one step (100000)."`
	MaxSteps      int            `env:"TROUPE_MAX_STEPS" group:"Limits" help:"Steps of one task in its whole life (1000000)."`
	MaxWindow     int            `env:"TROUPE_MAX_WINDOW" group:"Limits" help:"Attempts of one step at once (2000)."`
	MaxValue      int            `env:"TROUPE_MAX_VALUE" group:"Limits" placeholder:"BYTES" help:"Size of one input, output or shared value (1 MiB)."`
	MaxShared     int            `env:"TROUPE_MAX_SHARED" group:"Limits" placeholder:"BYTES" help:"Size of shared, and of the outputs of one step together (64 MiB)."`
	MaxFunctions  int            `env:"TROUPE_MAX_FUNCTIONS" group:"Limits" help:"Local functions at once (256)."`
	MaxScripts    int            `env:"TROUPE_MAX_SCRIPTS" group:"Limits" help:"Scripts at once, and as many programs of each kind but containers (256)."`
	MaxContainers int            `env:"TROUPE_MAX_CONTAINERS" group:"Limits" help:"Containers at once on the container host, of all members (64)."`
	MaxCalls      int            `env:"TROUPE_MAX_CALLS" group:"Limits" help:"Calls of push workers at once (256)."`
	Visibility    time.Duration  `env:"TROUPE_VISIBILITY" group:"Limits" help:"How long a pull worker may hold a job without a heartbeat (60s)."`
	IdleAfter     time.Duration  `env:"TROUPE_IDLE_AFTER" group:"Limits" help:"How long a task that only waits stays in memory (3s)."`
	WorkerTTL     time.Duration  `env:"TROUPE_WORKER_TTL" group:"Limits" help:"How long after its last heartbeat a worker counts as gone (15s)."`
	WorkerSave    time.Duration  `env:"TROUPE_WORKER_SAVE" group:"Limits" help:"How often heartbeats are written down (5s)."`
	ResumeGrace   *time.Duration `env:"TROUPE_RESUME_GRACE" group:"Limits" help:"How long the jobs of an attached worker wait for it when its stream breaks (5s); 0 = others get them at once."`
	MaxLog        int            `env:"TROUPE_MAX_LOG" group:"Limits" placeholder:"CHARS" help:"How much is kept of what an attempt prints, the newest (2000000)."`
	Retention     time.Duration  `env:"TROUPE_RETENTION" group:"Limits" help:"How long ended tasks are kept (720h); negative = for ever."`

	TraceMode string `env:"TROUPE_TRACE_MODE" enum:"parent,link" default:"parent" group:"Traces" help:"Whether a task belongs to the trace of whoever starts it (parent), or has its own with a link there (link). Where spans go is said by OpenTelemetry's variables, such as OTEL_EXPORTER_OTLP_ENDPOINT."`
	TraceURL  string `env:"TROUPE_TRACE_URL" placeholder:"URL" group:"Traces" help:"Where people see the trace of a task, with {trace_id} or {task} in it; pages have a link there."`
	LogURL    string `env:"TROUPE_LOG_URL" placeholder:"URL" group:"Traces" help:"Where people see the log lines of a task, with {trace_id} or {task} in it; likewise."`

	MetricsDetail string `env:"TROUPE_METRICS_DETAIL" enum:"service,node" default:"service" group:"Metrics" help:"How finely attempts are told apart in /metrics: by service, or also (node) by the node that they were of, of the first 500 nodes that the member comes across."`

	logFlags
	kong.Plugins // flags of additions
}

// buildConfig returns the member's configuration from the flags and from the variables of the first
// schedulers.
func (f *memberFlags) buildConfig(a *app) (troupe.Config, error) {
	if err := f.checkFlags(); err != nil {
		return troupe.Config{}, err
	}
	tokens, err := f.readTokens()
	if err != nil {
		return troupe.Config{}, err
	}
	log := f.newLogger(a)
	if names := idleSettings(); len(names) > 0 {
		log.Info("settings of Ork that mean nothing here", "variables", strings.Join(names, " "))
	}
	cfg := troupe.Config{
		Store: f.storeDSN(), Schema: f.Schema, Name: f.Name, Listen: f.Listen, UI: ui.Handler(),
		Tokens: tokens, Insecure: f.Insecure, AllowOrigins: f.AllowOrigin, AllowHosts: f.AllowHost, WorkerNetworks: f.WorkerNetwork,
		PollNetworks: f.PollNetwork, AllowMock: f.AllowMock, ObjectStore: f.ObjectStore,
		ObjectStoreKeep: f.ObjectStoreKeep, PayloadStore: f.PayloadStore, PayloadOver: f.PayloadOver,
		AllowContainers: f.AllowContainers, ContainerHost: f.ContainerHost,
		RegistryAuthFile: f.RegistryAuth, ContainerNetworks: f.Networks, Containers: f.MaxContainers,
		AllowScripts: f.AllowScripts, ScriptDir: f.ScriptDir, OrkWorkers: f.OrkWorkers,
		ChildEnv: f.ChildEnv, SecretEnv: f.SecretEnv, SecretDir: f.SecretDir,
		Limits: flow.Limits{Depth: f.MaxDepth, Units: f.MaxUnits, Steps: f.MaxSteps,
			Window: f.MaxWindow, Value: f.MaxValue, Shared: f.MaxShared},
		Functions: f.MaxFunctions, Scripts: f.MaxScripts, Calls: f.MaxCalls,
		Visibility: f.Visibility, IdleAfter: f.IdleAfter, MaxLog: f.MaxLog, Retention: f.Retention,
		NodeMetrics: f.MetricsDetail == "node", ResumeGrace: f.resumeGrace(),
		WorkerTTL:     cmp.Or(f.WorkerTTL, secondsFromEnv("WORKER_OFFLINE_TTL_SEC")),
		WorkerRefresh: cmp.Or(f.WorkerSave, secondsFromEnv("WORKER_REFRESH_INTERVAL_SEC")),
		TraceURL:      f.TraceURL, LogURL: f.LogURL, Logger: log,
	}
	for _, add := range a.additions {
		if err := add.Extend(&cfg); err != nil {
			return troupe.Config{}, err
		}
	}
	err = f.configureTracing(&cfg)
	return cfg, err
}

// idleSettings returns the set variables of Ork that have no effect here: this engine does not
// poll, its limits are flags, and workflows are published.
func idleSettings() []string {
	all := []string{"POLL_INTERVAL_SECS", "MAX_TASKS_PER_BATCH", "MAX_CONCURRENT_DISPATCHES",
		"MAX_CONCURRENT_STATUS_CHECKS", "DB_POOL_SIZE", "ENABLE_TRIGGERER",
		"ORK_LOCATIONS_CONFIG", "ORK_STATE_STORE"}
	return slices.DeleteFunc(all, func(name string) bool { return os.Getenv(name) == "" })
}

// graceGiven returns the requested grace; 0 if there is none.
func (f *memberFlags) graceGiven() time.Duration {
	if f.ResumeGrace == nil {
		return 0
	}
	return *f.ResumeGrace
}

// resumeGrace returns a negative value if no grace is wanted, because 0 means the default.
func (f *memberFlags) resumeGrace() time.Duration {
	if f.ResumeGrace != nil && *f.ResumeGrace == 0 {
		return -1
	}
	return f.graceGiven()
}

func (f *memberFlags) storeDSN() string {
	if path := os.Getenv("SCHEDULER_DB"); f.Store == "" && path != "" {
		return "sqlite:" + path
	}
	return cmp.Or(f.Store, "sqlite:troupe.db")
}

// checkFlags rejects numbers that would silently mean the default, and files that do not exist.
func (f *memberFlags) checkFlags() error {
	for _, n := range []struct {
		flag  string
		value int64
	}{
		{"max-depth", int64(f.MaxDepth)}, {"max-units", int64(f.MaxUnits)},
		{"max-steps", int64(f.MaxSteps)}, {"max-window", int64(f.MaxWindow)},
		{"max-value", int64(f.MaxValue)}, {"max-log", int64(f.MaxLog)}, {"max-shared", int64(f.MaxShared)},
		{"max-functions", int64(f.MaxFunctions)}, {"max-scripts", int64(f.MaxScripts)},
		{"max-calls", int64(f.MaxCalls)}, {"max-containers", int64(f.MaxContainers)},
		{"visibility", int64(f.Visibility)}, {"idle-after", int64(f.IdleAfter)},
		{"worker-ttl", int64(f.WorkerTTL)}, {"worker-save", int64(f.WorkerSave)},
		{"resume-grace", int64(f.graceGiven())},
	} {
		if n.value < 0 {
			return newUsageError("--%s is negative: give it a positive value, or leave it out for the default", n.flag)
		}
	}
	if path, isSet := os.LookupEnv("SCHEDULER_DB"); isSet && path == "" && f.Store == "" {
		return newUsageError("the variable SCHEDULER_DB is set and empty: name the store's file, or unset it")
	}
	if _, err := os.Stat(f.OrkWorkers); f.OrkWorkers != "" && err != nil {
		return newUsageError("--ork-workers (ORK_WORKERS_CONFIG) %s is no file of this host: "+
			"copy it here, or say nothing, and the workers.yaml beside each workflow counts", f.OrkWorkers)
	}
	return nil
}

// readTokens returns the tokens that grant access. Empty ones are dropped, because an empty token
// would admit every caller.
func (f *memberFlags) readTokens() ([]string, error) {
	lines := f.Token
	if f.TokenFile != "" {
		content, err := os.ReadFile(f.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading tokens: %w", err)
		}
		lines = append(lines, strings.Split(string(content), "\n")...)
	}
	var tokens []string
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			tokens = append(tokens, line)
		}
	}
	if f.TokenFile != "" && len(tokens) == 0 {
		return nil, fmt.Errorf("reading tokens: %s holds none", f.TokenFile)
	}
	return tokens, nil
}

// secondsFromEnv reads a variable that holds a positive number of seconds; 0 for anything else,
// which means the default.
func secondsFromEnv(variable string) time.Duration {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(min(n, math.MaxInt32)) * time.Second
}

// runningMember is a running member and its address.
type runningMember struct {
	engine *troupe.Engine
	url    string
	served chan error // receives the result of serving, once
}

// startMember opens the store and the listener, and serves until ctx ends.
func startMember(ctx context.Context, cfg troupe.Config) (*runningMember, error) {
	listener, err := troupe.Listen(cfg)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w; is a member running there already? Else choose another address with --listen", err)
	}
	if err != nil {
		return nil, err
	}
	if _, port, _ := net.SplitHostPort(cfg.Listen); port == "0" {
		cfg.Listen = listener.Addr().String() // the address for other members
	}
	cfg.Listener = listener
	engine, err := troupe.Open(ctx, cfg)
	if err != nil {
		return nil, errors.Join(withStoreHint(err), listener.Close())
	}
	if _, err := engine.Member(ctx); err != nil {
		return nil, errors.Join(withStoreHint(err), listener.Close(), engine.Close())
	}
	m := &runningMember{engine: engine, url: cfg.Scheme() + "://" + localAddress(listener.Addr()), served: make(chan error, 1)}
	// ends with ctx; waitForEnd receives the result
	go func() { m.served <- engine.Serve(ctx, nil) }()
	return m, nil
}

// withStoreHint adds advice if another member is using the store.
func withStoreHint(err error) error {
	if errors.Is(err, troupe.ErrTaken) {
		return fmt.Errorf("%w\nhint: stop that member, or give this one a store of its own with --store", err)
	}
	return err
}

// uiURL returns the address of the web pages.
func (m *runningMember) uiURL() string { return m.url + "/ui/" }

// waitForEnd returns when the member has stopped and is closed.
func (m *runningMember) waitForEnd() error { return errors.Join(<-m.served, m.engine.Close()) }

// localAddress returns an address in the form for callers on this host.
func localAddress(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
