package attach_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/worker"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	err := goleak.Find()
	// the actor library counts the last dead letters for a while
	for tries := 0; err != nil && tries < 4; tries++ {
		err = goleak.Find()
	}
	if code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const patience = time.Minute

// stage is a member with its API on loopback.
type stage struct {
	*testing.T
	engine *troupe.Engine
	cfg    troupe.Config
	url    string
	pause  func() // ends serving
	leave  func() // ends serving and waits until the member has stopped
}

// open starts a member. It uses a SQLite file unless cfg names another store.
func open(t *testing.T, cfg troupe.Config) *stage {
	if cfg.Store == "" {
		cfg.Store = "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	}
	cfg.Logger = slog.New(slog.NewTextHandler(testLog{t}, nil))
	s := &stage{T: t, cfg: cfg}
	s.begin("127.0.0.1:0")
	return s
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}

func (s *stage) begin(address string) {
	s.Helper()
	engine, err := troupe.Open(s.Context(), s.cfg)
	require.NoError(s, err)
	s.engine = engine
	s.serve(address)
	s.leave = sync.OnceFunc(func() {
		s.pause()
		require.NoError(s, engine.Close())
	})
	s.Cleanup(s.leave)
}

// serve serves until pause is called.
func (s *stage) serve(address string) {
	s.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(s, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	engine := s.engine
	go func() { served <- engine.Serve(ctx, l) }()
	s.url = "http://" + l.Addr().String()
	s.pause = sync.OnceFunc(func() {
		cancel()
		require.NoError(s, <-served)
	})
}

// attach runs an attached worker until the test ends or the function is called.
func (s *stage) attach(cfg worker.Config, handlers map[string]worker.Handler) (stop func()) {
	cfg.Attach = true
	return s.runWorker(cfg, handlers)
}

// runWorker runs a worker until the test ends or the function is called.
func (s *stage) runWorker(cfg worker.Config, handlers map[string]worker.Handler) (stop func()) {
	if cfg.Server == "" {
		cfg.Server = s.url
	}
	cfg.Logger = slog.New(slog.NewTextHandler(testLog{s.T}, nil))
	w := worker.New(cfg)
	for service, h := range handlers {
		w.Handle(service, h)
	}
	return s.run(w)
}

// run runs a worker until the test ends or the function is called.
func (s *stage) run(w *worker.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(s, <-ended)
	})
	s.Cleanup(stop)
	return stop
}

// listed waits until n workers are listed as attached.
func (s *stage) listed(n int) {
	s.Helper()
	require.Eventually(s, func() bool { return len(s.workers()) == n }, patience, time.Millisecond)
}

// workers returns the names of the attached workers.
func (s *stage) workers() map[string]bool {
	found := map[string]bool{}
	for id, kind := range s.knownWorkers() {
		if kind == "attached" {
			found[id] = true
		}
	}
	return found
}

// knownWorkers returns the types of the known workers, by name.
func (s *stage) knownWorkers() map[string]string {
	resp, err := http.Get(s.url + "/v1/workers")
	require.NoError(s, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	var answer struct {
		Items []struct{ ID, Type string }
	}
	require.NoError(s, json.Unmarshal(text, &answer), "%s", text)
	found := map[string]string{}
	for _, w := range answer.Items {
		found[w.ID] = w.Type
	}
	return found
}

// waits waits until a task waits for something of a kind.
func (s *stage) waits(task, kind string) (text string) {
	s.Helper()
	require.Eventually(s, func() bool {
		w, err := s.engine.Waiting(s.Context(), task)
		if err != nil || len(w.Waits) != 1 || w.Waits[0].Kind != kind {
			return false
		}
		text = w.Waits[0].Text
		return true
	}, patience, time.Millisecond)
	return text
}

// waitsFor waits until a task waits for something of a kind, and perhaps for more.
func (s *stage) waitsFor(task, kind string) {
	s.Helper()
	require.Eventually(s, func() bool {
		w, err := s.engine.Waiting(s.Context(), task)
		return err == nil && slices.ContainsFunc(w.Waits, func(w wire.WaitReason) bool { return w.Kind == kind })
	}, patience, time.Millisecond)
}

func (s *stage) publish(slug, definition string) {
	s.Helper()
	require.NoError(s, s.engine.Publish(s.Context(), slug, []byte(definition)))
}

func (s *stage) start(slug string, params any) (task string) {
	s.Helper()
	id, err := s.engine.Start(s.Context(), slug, params)
	require.NoError(s, err)
	return id
}

// end waits for the end of a task and returns its status, its error and its output under the key
// out.
func (s *stage) end(task string) *troupe.Result {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	r, err := s.engine.Wait(ctx, task)
	require.NoError(s, err)
	return r
}

// cable is a breakable connection between workers and a member.
type cable struct {
	to    string
	l     net.Listener
	mu    sync.Mutex
	conns map[net.Conn]bool
	cut   bool
	done  sync.WaitGroup
}

func newCable(t *testing.T, to string) *cable {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{to: to, l: l, conns: map[net.Conn]bool{}}
	c.done.Go(c.accept)
	t.Cleanup(func() {
		_ = l.Close()
		c.sever()
		c.done.Wait()
	})
	return c
}

func (c *cable) url() string { return "http://" + c.l.Addr().String() }

func (c *cable) accept() {
	for {
		in, err := c.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", c.to)
		if err != nil || !c.keep(in, out) {
			_ = in.Close()
			if out != nil {
				_ = out.Close()
			}
			continue
		}
		for _, p := range [][2]net.Conn{{in, out}, {out, in}} {
			c.done.Go(func() {
				_, _ = io.Copy(p[0], p[1])
				_ = p[0].Close()
				_ = p[1].Close()
			})
		}
	}
}

func (c *cable) keep(conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		c.conns[conn] = true
	}
	return !c.cut
}

// sever cuts the connection; no new one succeeds until mend is called.
func (c *cable) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for conn := range c.conns {
		_ = conn.Close()
	}
	clear(c.conns)
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
}
