package worker

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/job"
)

// errServing: the HTTP server of a push worker ended although nobody asked it to.
var errServing = errors.New("worker: serving jobs")

// maxRequest bounds the body of a pushed job.
const maxRequest = 16 << 20

// pushServer is a push worker's HTTP server.
type pushServer struct {
	url      string // where the engine reaches it
	listener net.Listener
	http     *http.Server
}

// openServer opens the port, and says in the worker's URL which one it got.
func (w *Worker) openServer() (*pushServer, error) {
	u, err := parseAddress("url", w.cfg.URL)
	if err != nil {
		return nil, err
	}
	listener, err := w.openListener(u)
	if err != nil {
		return nil, fmt.Errorf("worker: listen: %w", err)
	}
	if w.cfg.Listen == "" || u.Port() == "0" { // else the two may differ on purpose
		port := listener.Addr().(*net.TCPAddr).Port
		u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
	}
	return &pushServer{url: u.String(), listener: listener, http: &http.Server{Handler: w.newMux(),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}}, nil
}

// openListener takes a free port when the one of the URL is taken. An address to listen on is meant
// as it is.
func (w *Worker) openListener(u *url.URL) (net.Listener, error) {
	if w.cfg.Listen != "" {
		return net.Listen("tcp", w.cfg.Listen)
	}
	host := listenHost(u.Hostname())
	listener, err := net.Listen("tcp", net.JoinHostPort(host, cmp.Or(u.Port(), "8080")))
	if err == nil {
		return listener, nil
	}
	other, again := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if again != nil {
		return nil, err
	}
	w.cfg.Logger.Warn("another port is used", "used", other.Addr(), "error", err)
	return other, nil
}

// listenHost keeps a worker that is reached by loopback off the network.
func listenHost(host string) string {
	if addr, err := netip.ParseAddr(host); host == "localhost" || err == nil && addr.IsLoopback() {
		return host
	}
	return ""
}

// serveJobs returns when the server was shut down (nil) or broke. Jobs end with their context.
func (p *pushServer) serveJobs(jobs context.Context) error {
	p.http.BaseContext = func(net.Listener) context.Context { return jobs }
	if err := p.http.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%w: %w", errServing, err)
	}
	return nil
}

func (p *pushServer) shutdown(ctx context.Context) { _ = p.http.Shutdown(ctx) }

func (p *pushServer) close() { _ = p.http.Close() }

func (w *Worker) newMux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /exec/{service...}", w.handleExec)
	mux.HandleFunc("POST /exec", w.handleExecBatch)
	return mux
}

// handleExec carries out one pushed job. Everything a handler may come to is answered with 200.
func (w *Worker) handleExec(rw http.ResponseWriter, r *http.Request) {
	service := r.PathValue("service")
	h := w.handlerFor(service)
	if !w.authorizeCaller(rw, r) {
		return
	}
	if h == nil {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set(wire.HeaderBatch, "1")
	var req wire.ExecRequest
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxRequest))
	if err != nil || json.Unmarshal(body, &req) != nil {
		writeAnswer(rw, wire.ExecAnswer{Error: "bad request"})
		return
	}
	w.load.Add(1)
	defer w.load.Add(-1)
	j := jobFromHeaders(r.Header)
	j.Service, j.Input, j.Params, j.Log = service, req.Input, req.Params, io.Discard
	if said, begun := w.callInSlot(r.Context(), h, j); begun {
		writeAnswer(rw, said)
	}
}

// callInSlot calls a handler, unless nobody waits for that any longer. Its slot is free before the
// answer is sent: who takes that slowly, or not at all, keeps no job waiting.
func (w *Worker) callInSlot(ctx context.Context, h Handler, job Job) (said wire.ExecAnswer, begun bool) {
	if !w.takeSlot(ctx) {
		return said, false
	}
	defer w.freeSlot()
	return w.callHandler(ctx, h, job, nil), true
}

// authorizeCaller refuses all but the engine.
func (w *Worker) authorizeCaller(rw http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Header.Get("Origin") != "":
		// Engines send none. Without this any web page could have jobs done by a local worker.
		http.Error(rw, "requests of web pages are refused", http.StatusForbidden)
		return false
	case !w.hasSecret(r.Header.Get("Authorization")):
		http.Error(rw, "only the engine that this worker registered with has its secret", http.StatusUnauthorized)
		return false
	}
	return true
}

// hasSecret reports whether a caller has the secret.
func (w *Worker) hasSecret(authorization string) bool {
	return subtle.ConstantTimeCompare([]byte(authorization), []byte("Bearer "+w.cfg.Secret)) == 1
}

// jobFromHeaders reads what the headers tell about a job.
func jobFromHeaders(h http.Header) Job {
	text := func(name string) string {
		if t, err := url.PathUnescape(h.Get(name)); err == nil {
			return t
		}
		return h.Get(name)
	}
	number := func(name string, least int) int {
		n, _ := strconv.Atoi(h.Get(name)) // an engine may not tell
		return max(n, least)
	}
	return job.WithKey(h.Get(wire.HeaderKey), Job{ID: h.Get(wire.HeaderJob), Task: text(wire.HeaderTask), Flow: text(wire.HeaderFlow), Step: text(wire.HeaderStep), Trace: h.Get(wire.HeaderTrace),
		Unit: number(wire.HeaderUnit, 0), Units: number(wire.HeaderUnits, 1), Attempt: number(wire.HeaderAttempt, 0)})
}

func writeAnswer(rw http.ResponseWriter, a wire.ExecAnswer) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(a) // a caller that is gone does not want it
}
