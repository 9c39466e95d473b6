package containers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/internal/secrets"
)

// Name is the name of the service that polls containers.
const Name = "container"

// Options configure a Service. The zero value runs nothing.
type Options struct {
	// Allow permits containers. Users who may create flows may then run programs on the container
	// host.
	Allow bool
	// Host is the address of the container host, such as unix:///run/podman/podman.sock. If empty,
	// DOCKER_HOST or Docker's default is used.
	Host string
	// Logins is a file with registry logins, in the form of Docker's config.json. If empty, images
	// are pulled without login.
	Logins string
	// Networks are additional networks that containers may use. If empty, all networks except the
	// host's own are allowed.
	Networks []string
	// Dir is the folder that contains all mounts. If empty, mounts are not allowed.
	Dir string
	// MaxOutput bounds an output; 0 means 1 MiB. A larger one fails its attempt.
	MaxOutput int
	// Most is how many containers of this store may run on the container host at once, for all
	// members. 0 means 64. Others wait.
	Most int
	// Files lets containers report through an object store. If nil, such jobs fail.
	Files Files
	// Now returns the time in Unix milliseconds; nil means this host's clock.
	Now func() int64
	// Logs stores the output of containers while they run. May be nil.
	Logs *logs.Book
	// Secrets are the secrets that containers may get; nil means none.
	Secrets *secrets.Store
	// Member is the name of this member, for the labels of its containers.
	Member string
	// Store distinguishes the containers of this store from others on the same container host.
	Store string
	// Live reports whether the container of a job is still needed, or is being canceled.
	Live func(ctx context.Context, job string) (bool, error)
	// Logger logs failures of the container host and orphaned containers; nil means slog.Default().
	Logger *slog.Logger
}

// Service starts containers and polls them.
type Service struct {
	opts        Options
	client      *client.Client // nil if containers are not allowed
	ctx         context.Context
	cancel      context.CancelFunc
	work        sync.WaitGroup
	sweepSignal chan struct{} // holds a token when the sweeper should run soon

	slotLock chan struct{} // holds a token while a caller waits for a slot
	starting atomic.Int32  // containers that are starting and may not be listed yet

	mu      sync.Mutex
	watches map[string]*containerWatch // by container name
	hidden  map[string]hiddenSecrets   // redactors by container name
}

// New creates a service. The caller must close it.
func New(o Options) (*Service, error) {
	o.Logger, o.Most = cmp.Or(o.Logger, slog.Default()), cmp.Or(o.Most, defaultMaxRunning)
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	s := &Service{opts: o, watches: map[string]*containerWatch{},
		hidden: map[string]hiddenSecrets{}, sweepSignal: make(chan struct{}, 1),
		slotLock: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if !o.Allow {
		return s, nil
	}
	if _, err := registryLogins(o.Logins).readLogins(); err != nil {
		return nil, err
	}
	host, err := reachedBy(o.Host)
	if err != nil {
		return nil, err
	}
	if s.client, err = client.New(host...); err != nil {
		return nil, fmt.Errorf("the container host %s: %w", o.Host, err)
	}
	s.work.Go(s.runSweeper)
	return s, nil
}

// reachedBy returns the client options for a container host. TLS certificates come from Docker's
// environment variables.
func reachedBy(host string) ([]client.Opt, error) {
	if host == "" {
		return []client.Opt{client.FromEnv}, nil
	}
	if _, err := client.ParseHostURL(host); err != nil {
		return nil, errors.New("the container host " + host +
			" is no address: write one such as unix:///run/podman/podman.sock or tcp://127.0.0.1:2375")
	}
	return []client.Opt{client.WithTLSClientConfigFromEnv(), client.WithHost(host)}, nil
}

// Close stops watching containers. The containers continue, and the owners of their tasks poll
// them.
func (s *Service) Close() error {
	s.cancel()
	s.work.Wait()
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

// notAllowedText is the error of jobs if containers are not allowed.
const notAllowedText = "containers are not allowed on this server; its operator can allow them with --allow-containers"
