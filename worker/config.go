package worker

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
)

// Config configures a Worker. Zero fields mean the default.
type Config struct {
	// Server is the engine's address, as http://host:port. It may list several members, separated
	// by commas: the worker uses the next one if a member cannot be reached or leaves. The default
	// is TROUPE_SERVER or REGISTRY_URL from the environment, else http://127.0.0.1:8070.
	Server string
	// Token authenticates the worker. The default is TROUPE_TOKEN from the environment. With a
	// wrong token Run returns ErrDenied.
	Token string
	// Trust sets the certificates that the worker accepts from an https engine, and its own
	// certificate.
	Trust client.Trust
	// ID identifies the worker. By default it is made from host, process and time.
	ID string
	// Services are the services to offer. Each needs a handler. The default is all services with
	// handlers.
	Services []string

	// Labels are the worker's labels, such as "gpu". A job that requires labels goes only to
	// workers that have all of them.
	Labels []string

	// Push makes the worker an HTTP server that the engine calls. Pull makes the worker request
	// jobs. Attach makes the worker connect to the engine and receive jobs over one stream; it
	// excludes Push and Pull. If none is set, Pull is used.
	Push, Pull, Attach bool
	// URL is the address at which the engine reaches a push worker. The default is WORKER_URL from
	// the environment, else http://localhost:8080. If the port is in use, the worker uses a free
	// port and registers that one.
	URL string
	// Listen is the address on which a push worker listens. The default is the port of URL, on
	// loopback if the host of URL is loopback.
	Listen string
	// Secret authenticates calls of the engine to a push worker. The registration sends it to the
	// engine only. The default is random. Workers that share a URL must share the secret.
	Secret string
	// Wait is how long a pull worker's request for jobs may stay open; default 20 s.
	Wait time.Duration

	// Concurrency is the maximum number of concurrent handlers; default 64.
	Concurrency int
	// Grace is how long jobs may continue after Run's context has ended. The default is 10 s; a
	// negative value means not at all.
	Grace time.Duration
	// Heartbeat is the interval of the worker's heartbeats, which also check whether its pulled
	// jobs are canceled; default 5 s.
	Heartbeat time.Duration
	// NoteAfter is how long a pulled or attached job must run before the worker informs the engine
	// that the job is running. Shorter jobs send no such message. The default is 250 ms.
	NoteAfter time.Duration
	// KeepWarm is how long a waiting function stays in memory, so that it needs no replay if its
	// wait ends soon. The default is 5 s; a negative value means not at all. See HandleFlow.
	KeepWarm time.Duration
	// Logger receives errors and warnings, never the content of jobs; default slog.Default().
	Logger *slog.Logger
}

func (c Config) orDefault() Config {
	c.Server = cmp.Or(c.Server, os.Getenv("TROUPE_SERVER"), os.Getenv("REGISTRY_URL"), "http://127.0.0.1:8070")
	// a token that was read from a file has a line end
	c.Token = strings.TrimSpace(cmp.Or(c.Token, os.Getenv("TROUPE_TOKEN")))
	c.URL = strings.TrimRight(cmp.Or(c.URL, os.Getenv("WORKER_URL"), "http://localhost:8080"), "/")
	if !c.Push && !c.Attach {
		c.Pull = true
	}
	if c.ID == "" {
		c.ID = generateID()
	}
	c.Secret = cmp.Or(c.Secret, rand.Text())
	c.Wait = cmp.Or(c.Wait, 20*time.Second)
	c.Concurrency = max(cmp.Or(c.Concurrency, 64), 1)
	c.Grace = max(cmp.Or(c.Grace, 10*time.Second), 0)
	c.Heartbeat = cmp.Or(c.Heartbeat, 5*time.Second)
	c.KeepWarm = max(cmp.Or(c.KeepWarm, 5*time.Second), 0)
	c.NoteAfter = cmp.Or(c.NoteAfter, 250*time.Millisecond)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// serverAddresses returns the addresses of the members.
func (c *Config) serverAddresses() []string {
	servers := strings.Split(c.Server, ",")
	for i, server := range servers {
		servers[i] = baseURL(strings.TrimSpace(server))
	}
	return servers
}

// baseURL returns the address of the engine without a trailing /api or /v1, which some users add.
func baseURL(server string) string {
	server = strings.TrimRight(server, "/")
	for _, below := range []string{"/api", "/v1"} {
		server = strings.TrimSuffix(server, below)
	}
	return server
}

// parseAddress parses the address of an HTTP server.
func parseAddress(what, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("worker: %s %q: want http://host:port", what, text)
	}
	return u, nil
}

func generateID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fmt.Sprintf("%s-%d-%d", host, os.Getpid(), time.Now().UnixNano())
}
