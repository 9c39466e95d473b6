package serve

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
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// memberFlags holds the settings of a member. Each has a flag and an environment variable.
type memberFlags struct {
	Store  string `env:"TROUPE_STORE" placeholder:"SETTING" help:"Store: sqlite:PATH or a postgres:// URL."`
	Schema string `env:"TROUPE_SCHEMA" placeholder:"NAME" help:"PostgreSQL schema, created if missing (troupe)."`
	Listen string `env:"TROUPE_LISTEN" default:"127.0.0.1:8070" placeholder:"ADDR" help:"Address of the HTTP API (${default})."`
	Name   string `env:"TROUPE_NAME,SCHEDULER_OWNER" help:"Member name in logs and lists."`

	Token           []string       `env:"TROUPE_TOKEN" sep:"none" group:"Access" help:"Accept callers with this bearer token. Repeatable."`
	TokenFile       string         `env:"TROUPE_TOKEN_FILE" type:"existingfile" group:"Access" help:"Accept callers with a bearer token of this file, one per line."`
	Insecure        bool           `env:"TROUPE_INSECURE" group:"Access" help:"Allow listening beyond this host without tokens."`
	AllowOrigin     []string       `env:"TROUPE_ALLOW_ORIGIN" group:"Access" help:"Additional allowed origins of web pages; * = all."`
	AllowHost       []string       `env:"TROUPE_ALLOW_HOST" group:"Access" help:"Additional host names of this member; * = all."`
	WorkerNetwork   []netip.Prefix `env:"TROUPE_WORKER_NETWORK" placeholder:"CIDR" group:"Access" help:"Allowed networks of push workers, besides this host."`
	PollNetwork     []netip.Prefix `env:"TROUPE_POLL_NETWORK" placeholder:"CIDR" group:"Access" help:"Allowed networks for polling deferred jobs of custom_http. Default: none, not even this host."`
	AllowMock       bool           `env:"TROUPE_ALLOW_MOCK" group:"Access" help:"Allow mock:// URLs of deferred jobs, for tests."`
	ObjectStore     string         `env:"TROUPE_OBJECT_STORE,ORK_OBJECT_STORE" placeholder:"URL" group:"Access" help:"Object store for workers that report by files (exec: {report: object_store}): file:///FOLDER."`
	PayloadStore    string         `env:"TROUPE_PAYLOAD_STORE" placeholder:"URL" group:"Access" help:"Object store for large values, which the store then references: file:///FOLDER."`
	PayloadMin      int            `name:"payload-threshold" env:"TROUPE_PAYLOAD_THRESHOLD" placeholder:"BYTES" group:"Access" help:"Size above which values go to --payload-store (65536)."`
	FilesRetention  time.Duration  `name:"object-store-retention" env:"TROUPE_OBJECT_STORE_RETENTION" group:"Access" help:"Retention of object store files after the end of their task. Default: that of the task."`
	AllowScripts    bool           `env:"TROUPE_ALLOW_SCRIPTS" group:"Access" help:"Allow flows to run programs on this host as this user."`
	ScriptDir       string         `env:"TROUPE_SCRIPT_DIR" type:"path" group:"Access" help:"Folder in which scripts and programs run. Their work_dir or root must be inside it."`
	OrkWorkers      string         `env:"ORK_WORKERS_CONFIG" placeholder:"FILE" group:"Access" help:"File with workers of Ork workflows, instead of the workers.yaml beside them."`
	AllowContainers bool           `env:"TROUPE_ALLOW_CONTAINERS" group:"Access" help:"Allow flows to run containers."`
	ContainerHost   string         `env:"TROUPE_CONTAINER_HOST" placeholder:"URL" group:"Access" help:"Container engine, such as unix:///run/podman/podman.sock. Default: DOCKER_HOST, or else Docker's default socket."`
	RegistryAuth    string         `name:"registry-auth-file" env:"TROUPE_REGISTRY_AUTH_FILE" type:"path" placeholder:"FILE" group:"Access" help:"Registry credentials, in the format of Docker's config.json. Read again for each image."`
	Networks        []string       `name:"container-networks" env:"TROUPE_CONTAINER_NETWORKS" placeholder:"NAME" group:"Access" help:"Allowed networks of containers, besides none and the default one. Default: all but host."`
	ChildEnv        []string       `env:"TROUPE_CHILD_ENV" placeholder:"NAME" group:"Access" help:"Environment variables passed to scripts, besides PATH, HOME, LANG, LC_*, TZ, TMPDIR and USER."`
	SecretEnv       []string       `env:"TROUPE_SECRET_ENV" placeholder:"NAME" group:"Access" help:"Environment variables that flows can use as secrets."`
	SecretDir       string         `env:"TROUPE_SECRET_DIR" type:"path" placeholder:"DIR" group:"Access" help:"Folder whose files flows can use as secrets. Read again for each attempt."`

	MaxDepth           int            `env:"TROUPE_MAX_DEPTH" group:"Limits" help:"Maximum depth of nested scopes (16)."`
	MaxUnits           int            `env:"TROUPE_MAX_UNITS" group:"Limits" help:"Maximum units of a step (100000)."`
	MaxSteps           int            `env:"TROUPE_MAX_STEPS" group:"Limits" help:"Maximum steps of a task (1000000)."`
	MaxStepConcurrency int            `env:"TROUPE_MAX_STEP_CONCURRENCY" group:"Limits" help:"Maximum concurrent attempts of a step (2000)."`
	MaxValue           int            `env:"TROUPE_MAX_VALUE" group:"Limits" placeholder:"BYTES" help:"Maximum size of an input, output or shared value (1 MiB)."`
	MaxShared          int            `env:"TROUPE_MAX_SHARED" group:"Limits" placeholder:"BYTES" help:"Maximum size of shared, and of all outputs of a step (64 MiB)."`
	MaxFunctions       int            `env:"TROUPE_MAX_FUNCTIONS" group:"Limits" help:"Maximum concurrent local functions (256)."`
	MaxScripts         int            `env:"TROUPE_MAX_SCRIPTS" group:"Limits" help:"Maximum concurrent scripts, and programs of each other kind except containers (256)."`
	MaxContainers      int            `env:"TROUPE_MAX_CONTAINERS" group:"Limits" help:"Maximum concurrent containers on the container host, for all members (64)."`
	MaxCalls           int            `env:"TROUPE_MAX_CALLS" group:"Limits" help:"Maximum concurrent calls of push workers (256)."`
	JobLease           time.Duration  `env:"TROUPE_JOB_LEASE" group:"Limits" help:"Time without a heartbeat after which a pull worker loses its job (60s)."`
	IdleAfter          time.Duration  `env:"TROUPE_IDLE_AFTER" group:"Limits" help:"Time that a waiting task stays in memory (3s)."`
	WorkerTTL          time.Duration  `env:"TROUPE_WORKER_TTL" group:"Limits" help:"Time without a heartbeat after which a worker is offline (15s)."`
	WorkerSaveInterval time.Duration  `env:"TROUPE_WORKER_SAVE_INTERVAL" group:"Limits" help:"Interval for storing heartbeats of workers (5s)."`
	ResumeGrace        *time.Duration `env:"TROUPE_RESUME_GRACE" group:"Limits" help:"Time that jobs wait for an attached worker to reconnect (5s); 0 = other workers get them at once."`
	outputFlags
	Retention time.Duration `env:"TROUPE_RETENTION" group:"Limits" help:"Retention of ended tasks (720h); negative = unlimited."`

	TraceMode string `env:"TROUPE_TRACE_MODE" enum:"parent,link" default:"parent" group:"Traces" help:"parent: tasks join the trace of their caller; link: tasks have their own trace with a link to it. OpenTelemetry variables such as OTEL_EXPORTER_OTLP_ENDPOINT set the destination."`
	TraceURL  string `env:"TROUPE_TRACE_URL" placeholder:"URL" group:"Traces" help:"URL of a task's trace, with {trace_id} or {task}. Pages link to it."`
	LogURL    string `env:"TROUPE_LOG_URL" placeholder:"URL" group:"Traces" help:"URL of a task's logs, with {trace_id} or {task}. Pages link to it."`

	MetricsDetail string `env:"TROUPE_METRICS_DETAIL" enum:"service,node" default:"service" group:"Metrics" help:"Detail of attempt metrics: service, or node to also count by node, for the first 500 nodes."`

	console.LogFlags
	kong.Plugins // flags of the program's additions
}

// buildConfig returns the member's configuration from the flags and from the variables of the first
// schedulers.
func (f *memberFlags) buildConfig(a *console.App) (troupe.Config, error) {
	if err := f.checkFlags(); err != nil {
		return troupe.Config{}, err
	}
	tokens, err := f.readTokens()
	if err != nil {
		return troupe.Config{}, err
	}
	log := f.NewLogger(a)
	if names := idleSettings(); len(names) > 0 {
		log.Info("settings of Ork are ignored", "variables", strings.Join(names, " "))
	}
	cfg := troupe.Config{
		Store: f.storeDSN(), Schema: f.Schema, Name: f.Name, Listen: f.Listen, UI: ui.Handler(),
		Tokens: tokens, Insecure: f.Insecure, AllowOrigins: f.AllowOrigin, AllowHosts: f.AllowHost, WorkerNetworks: f.WorkerNetwork,
		PollNetworks: f.PollNetwork, AllowMock: f.AllowMock, ObjectStore: f.ObjectStore,
		ObjectStoreRetention: f.FilesRetention, PayloadStore: f.PayloadStore, PayloadThreshold: f.PayloadMin,
		AllowContainers: f.AllowContainers, ContainerHost: f.ContainerHost,
		RegistryAuthFile: f.RegistryAuth, ContainerNetworks: f.Networks, Containers: f.MaxContainers,
		AllowScripts: f.AllowScripts, ScriptDir: f.ScriptDir, OrkWorkers: f.OrkWorkers,
		ChildEnv: f.ChildEnv, SecretEnv: f.SecretEnv, SecretDir: f.SecretDir,
		Limits: flow.Limits{Depth: f.MaxDepth, Units: f.MaxUnits, Steps: f.MaxSteps,
			Window: f.MaxStepConcurrency, Value: f.MaxValue, Shared: f.MaxShared},
		Functions: f.MaxFunctions, Scripts: f.MaxScripts, Calls: f.MaxCalls,
		JobLease: f.JobLease, IdleAfter: f.IdleAfter, MaxLog: f.MaxLog, MaxStreams: f.MaxStreams, Retention: f.Retention,
		NodeMetrics: f.MetricsDetail == "node", ResumeGrace: f.resumeGrace(),
		WorkerTTL:     cmp.Or(f.WorkerTTL, secondsFromEnv("WORKER_OFFLINE_TTL_SEC")),
		WorkerRefresh: cmp.Or(f.WorkerSaveInterval, secondsFromEnv("WORKER_REFRESH_INTERVAL_SEC")),
		TraceURL:      f.TraceURL, LogURL: f.LogURL, Logger: log,
	}
	for _, add := range a.Additions {
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

// graceGiven returns the requested grace; 0 if none was requested.
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

// outputFlags limit the output of jobs.
type outputFlags struct {
	MaxLog     int   `env:"TROUPE_MAX_LOG" group:"Limits" placeholder:"CHARS" help:"Maximum size of an attempt's log; the newest lines are kept (2000000)."`
	MaxStreams int64 `env:"TROUPE_MAX_STREAMS" group:"Limits" placeholder:"BYTES" help:"Maximum size of the values in all streams of a task (64 MiB)."`
}

// checkFlags rejects numbers that would silently mean the default, and files that do not exist.
func (f *memberFlags) checkFlags() error {
	for _, n := range []struct {
		flag  string
		value int64
	}{
		{"max-depth", int64(f.MaxDepth)}, {"max-units", int64(f.MaxUnits)},
		{"max-steps", int64(f.MaxSteps)}, {"max-step-concurrency", int64(f.MaxStepConcurrency)},
		{"max-value", int64(f.MaxValue)}, {"max-log", int64(f.MaxLog)}, {"max-streams", f.MaxStreams}, {"max-shared", int64(f.MaxShared)},
		{"max-functions", int64(f.MaxFunctions)}, {"max-scripts", int64(f.MaxScripts)},
		{"max-calls", int64(f.MaxCalls)}, {"max-containers", int64(f.MaxContainers)},
		{"job-lease", int64(f.JobLease)}, {"idle-after", int64(f.IdleAfter)},
		{"worker-ttl", int64(f.WorkerTTL)}, {"worker-save-interval", int64(f.WorkerSaveInterval)},
		{"resume-grace", int64(f.graceGiven())},
	} {
		if n.value < 0 {
			return console.NewUsageError("--%s is negative: use a positive value, or omit the flag for the default", n.flag)
		}
	}
	if path, isSet := os.LookupEnv("SCHEDULER_DB"); isSet && path == "" && f.Store == "" {
		return console.NewUsageError("the variable SCHEDULER_DB is set but empty: set it to the store's file, or unset it")
	}
	if _, err := os.Stat(f.OrkWorkers); f.OrkWorkers != "" && err != nil {
		return console.NewUsageError("--ork-workers (ORK_WORKERS_CONFIG): the file %s does not exist on this host: "+
			"copy it here, or omit the flag to use the workers.yaml beside each workflow", f.OrkWorkers)
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
		return nil, fmt.Errorf("reading tokens: %s is empty", f.TokenFile)
	}
	return tokens, nil
}

// secondsFromEnv reads a variable that holds a positive number of seconds. Any other value returns
// 0, which means the default.
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
	served chan error // receives the result of Serve once
}

// startMember opens the store and the listener, and serves until ctx ends.
func startMember(ctx context.Context, cfg troupe.Config) (*runningMember, error) {
	listener, err := troupe.Listen(cfg)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: stop the program that uses the address, or set another one with --listen", err)
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
		return fmt.Errorf("%w\nhint: stop the other member, or set another store with --store", err)
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
