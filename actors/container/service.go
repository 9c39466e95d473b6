package container

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

	"github.com/troupe-engine/troupe/actors/logs"
	"github.com/troupe-engine/troupe/internal/secrets"
)

// Name is what the service is called whose tracker looks after containers.
const Name = "container"

// Options of a Service. The zero value runs nothing.
type Options struct {
	// Allow lets containers be run. Whoever may create flows may then run programs on the container
	// host.
	Allow bool
	// Host is where the container host listens, such as unix:///run/podman/podman.sock; "" = what
	// DOCKER_HOST says, or Docker's own place.
	Host string
	// Logins is a file in the form of Docker's config.json that says as whom images are fetched, by
	// their registries. "" = as nobody in particular.
	Logins string
	// Networks are those that containers may be in beside none and the default one; none = any but
	// the host's own.
	Networks []string
	// Dir is the folder that mounts are in. "" = there are no mounts.
	Dir string
	// MaxOutput bounds an output; 0 = 1 MiB. More fails its attempt.
	MaxOutput int
	// Most is how many containers of this store may run on the container host at once, whoever
	// began them; 0 = 64. Others wait.
	Most int
	// Files are how containers report that do so by an object store; nil = none may.
	Files Files
	// Now is the time in Unix milliseconds; nil = this host's clock.
	Now func() int64
	// Logs keeps what containers print, while they do. nil = nobody does.
	Logs *logs.Book
	// Secrets are those that containers may be given; nil = none.
	Secrets *secrets.Store
	// Member is who began a container, for whoever looks at the container host.
	Member string
	// Store tells containers of tasks of this store from those of others that share the container
	// host.
	Store string
	// Live reports whether somebody waits for the container of a job, or it is being ended.
	Live func(ctx context.Context, job string) (bool, error)
	// Logger hears of a container host that cannot be reached, and of what was left over; nil =
	// slog.Default().
	Logger *slog.Logger
}

// Service begins containers and looks after them.
type Service struct {
	opts        Options
	client      *client.Client // nil when containers are not allowed
	ctx         context.Context
	cancel      context.CancelFunc
	work        sync.WaitGroup
	sweepSignal chan struct{} // has something when somebody should look soon for what is left over

	slotLock chan struct{} // has something while somebody looks for room for another container
	starting atomic.Int32  // containers that are being started, and may not be among those that run

	mu      sync.Mutex
	watches map[string]*containerWatch // by the name of the container
	hidden  map[string]hiddenSecrets   // of those with secrets
}

// New makes a service. It is to be closed.
func New(o Options) (*Service, error) {
	o.Logger, o.Most = cmp.Or(o.Logger, slog.Default()), cmp.Or(o.Most, defaultMaxRunning)
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	s := &Service{opts: o, watches: map[string]*containerWatch{}, hidden: map[string]hiddenSecrets{}, sweepSignal: make(chan struct{}, 1), slotLock: make(chan struct{}, 1)}
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

// reachedBy says how to reach the container host. Certificates for one that wants them are where
// Docker's variables say.
func reachedBy(host string) ([]client.Opt, error) {
	if host == "" {
		return []client.Opt{client.FromEnv}, nil
	}
	if _, err := client.ParseHostURL(host); err != nil {
		return nil, errors.New("the container host " + host + " is no address: write one such as unix:///run/podman/podman.sock or tcp://127.0.0.1:2375")
	}
	return []client.Opt{client.WithTLSClientConfigFromEnv(), client.WithHost(host)}, nil
}

// Close stops looking. Containers go on: whoever has their tasks then looks after them.
func (s *Service) Close() error {
	s.cancel()
	s.work.Wait()
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

// notAllowedText is what a job comes to where no containers are allowed.
const notAllowedText = "containers are not allowed on this server; its operator can allow them with --allow-containers"
