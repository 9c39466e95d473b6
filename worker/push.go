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
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/job"
)

// errServing reports that the HTTP server of a push worker ended unexpectedly.
var errServing = errors.New("worker: serving jobs")

// maxRequest bounds the body of a pushed job.
const maxRequest = 16 << 20

// pushServer is the HTTP server of a push worker.
type pushServer struct {
	url      string // address of the server for the engine
	listener net.Listener
	http     *http.Server
}

// openServer opens the port and writes the actual port into the worker's URL.
func (w *Worker) openServer() (*pushServer, error) {
	u, err := parseAddress("url", w.cfg.URL)
	if err != nil {
		return nil, err
	}
	listener, err := w.openListener(u)
	if err != nil {
		return nil, fmt.Errorf("worker: listen: %w", err)
	}
	if w.cfg.Listen == "" || u.Port() == "0" { // otherwise the two may differ on purpose
		port := listener.Addr().(*net.TCPAddr).Port
		u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
	}
	return &pushServer{url: u.String(), listener: listener, http: &http.Server{Handler: w.newMux(),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}}, nil
}

// openListener opens the port of the URL, or a free port if that one is in use. A configured Listen
// address is used unchanged.
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
	w.cfg.Logger.Warn("port is in use, listening on another one", "address", other.Addr(), "error", err)
	return other, nil
}

// listenHost returns the host to listen on. A worker with a loopback URL listens on loopback only.
func listenHost(host string) string {
	if addr, err := netip.ParseAddr(host); host == "localhost" || err == nil && addr.IsLoopback() {
		return host
	}
	return ""
}

// serveJobs serves requests until the server is shut down (nil) or fails. Jobs end with their
// context.
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

// handleExec carries out one pushed job. The status is 200 for every outcome of the handler.
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

// callInSlot calls a handler in a slot. begun is false if ctx ended before there was a slot. The
// slot is free again before the answer is sent, so a slow reader blocks no other job.
func (w *Worker) callInSlot(ctx context.Context, h Handler, job Job) (said wire.ExecAnswer, begun bool) {
	if !w.takeSlot(ctx) {
		return said, false
	}
	defer w.freeSlot()
	return w.callHandler(ctx, h, job, "", nil), true
}

// authorizeCaller rejects all callers except the engine.
func (w *Worker) authorizeCaller(rw http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Header.Get("Origin") != "":
		// Engines send no Origin. Without this check any web page could run jobs on a local worker.
		http.Error(rw, "requests of web pages are refused", http.StatusForbidden)
		return false
	case !w.hasSecret(r.Header.Get("Authorization")):
		http.Error(rw, "only the engine that this worker registered with has its secret", http.StatusUnauthorized)
		return false
	}
	return true
}

// hasSecret reports whether the caller sent the secret.
func (w *Worker) hasSecret(authorization string) bool {
	return subtle.ConstantTimeCompare([]byte(authorization), []byte("Bearer "+w.cfg.Secret)) == 1
}

// jobFromHeaders returns the job that the headers describe.
func jobFromHeaders(h http.Header) Job {
	text := func(name string) string { return unescapeText(h.Get(name)) }
	var labels []string
	if list := h.Get(wire.HeaderLabels); list != "" {
		for label := range strings.SplitSeq(list, ",") {
			labels = append(labels, unescapeText(label))
		}
	}
	number := func(name string, least int) int {
		n, _ := strconv.Atoi(h.Get(name)) // the engine may not send it
		return max(n, least)
	}
	return job.WithKey(h.Get(wire.HeaderKey),
		Job{ID: h.Get(wire.HeaderJob), Task: text(wire.HeaderTask), Flow: text(wire.HeaderFlow),
			Step: text(wire.HeaderStep), Labels: labels, Trace: h.Get(wire.HeaderTrace),
			Unit: number(wire.HeaderUnit, 0), Units: number(wire.HeaderUnits, 1), Attempt: number(wire.HeaderAttempt, 0)})
}

// unescapeText returns a text that was escaped as in the path of a URL.
func unescapeText(text string) string {
	if t, err := url.PathUnescape(text); err == nil {
		return t
	}
	return text
}

func writeAnswer(rw http.ResponseWriter, a wire.ExecAnswer) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(a) // fails only if the caller is gone
}
