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

// Config of a Worker. Zero fields mean the default.
type Config struct {
	// Server is the engine's address, as http://host:port, or those of several of its members with
	// commas between them: the worker goes on with the next one when one cannot be reached, or has
	// to leave. The environment's TROUPE_SERVER or REGISTRY_URL, else http://127.0.0.1:8070.
	Server string
	// Token proves the worker to the engine; the environment's TROUPE_TOKEN. A wrong one ends Run
	// (ErrDenied).
	Token string
	// Trust says whom the worker believes when the engine is reached by https, and how it proves
	// itself.
	Trust client.Trust
	// ID tells workers apart. One is made up from host, process and time.
	ID string
	// Services it offers of those that have handlers; all.
	Services []string

	// Labels it has, such as "gpu": a job that asks for labels goes to workers that have them all.
	Labels []string

	// Push makes the worker an HTTP server, Pull makes it ask for jobs. Attach makes it dial in and
	// get its jobs over that one stream: it goes without the others. None means Pull.
	Push, Pull, Attach bool
	// URL is where the engine reaches a push worker. The environment's WORKER_URL, else
	// http://localhost:8080. When its port is taken a free one is used, and told to the engine.
	URL string
	// Listen is the address a push worker listens on. By default the URL's port, on loopback if
	// the URL is.
	Listen string
	// Secret is what a push worker wants to see with every call; it is told to the engine, and to
	// nobody else, with the registration. One is made up. Workers of one URL must have the same.
	Secret string
	// Wait is how long a pull worker's request for jobs may stay with the engine; 20 s.
	Wait time.Duration

	// Concurrency is how many handlers run at once; 64.
	Concurrency int
	// Grace is how long jobs may go on when Run's context has ended; 10 s. Negative: not at all.
	Grace time.Duration
	// Heartbeat is how often the worker gives a sign of life, and asks whether its pulled jobs are
	// still wanted; 5 s.
	Heartbeat time.Duration
	// NoteAfter is how long a pulled or attached worker's job must have run before the engine is
	// told that it is running; 250 ms. Short jobs are spared the message.
	NoteAfter time.Duration
	// Logger hears what goes wrong, never what jobs are about; slog.Default().
	Logger *slog.Logger
}

func (c Config) orDefault() Config {
	c.Server = cmp.Or(c.Server, os.Getenv("TROUPE_SERVER"), os.Getenv("REGISTRY_URL"), "http://127.0.0.1:8070")
	c.Token = strings.TrimSpace(cmp.Or(c.Token, os.Getenv("TROUPE_TOKEN"))) // a file has the end of a line behind it
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
	c.NoteAfter = cmp.Or(c.NoteAfter, 250*time.Millisecond)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// serverAddresses are the addresses of the members.
func (c *Config) serverAddresses() []string {
	servers := strings.Split(c.Server, ",")
	for i, server := range servers {
		servers[i] = baseURL(strings.TrimSpace(server))
	}
	return servers
}

// baseURL is where the engine is; that its routes are below /api there, or below /v1, some say
// along.
func baseURL(server string) string {
	server = strings.TrimRight(server, "/")
	for _, below := range []string{"/api", "/v1"} {
		server = strings.TrimSuffix(server, below)
	}
	return server
}

// parseAddress reads the address of an HTTP server.
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
