package troupe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/pgflow"
	v1 "github.com/troupe-engine/troupe/api/v1"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/internal/payload"
)

// The methods of an Engine call the routes of /v1 in the same process, as the Go client would, but
// without a network. So checks, paging and error texts exist in one place, and a program gets the
// same answers as any other client.

// inProcessTransport passes requests of the Go client to the routes of the member in this process.
type inProcessTransport struct{ engine *Engine }

// RoundTrip returns when the routes have started their answer. The body is read while it is
// written; closing it ends the request.
func (i inProcessTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	routes, err := i.engine.currentRoutes(r.Context())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	closed := context.AfterFunc(i.engine.ctx, cancel)
	body, w := io.Pipe()
	a := &pipedResponse{header: http.Header{}, started: make(chan struct{}), body: w, payloads: i.engine.payloads}
	request := r.Clone(ctx)
	request.RequestURI, request.RemoteAddr = r.URL.RequestURI(), "inside"
	if request.Body == nil {
		request.Body = http.NoBody
	}
	go func() { // ends with the request, whose context ends with its body at the latest
		defer closed()
		defer cancel()
		_ = w.CloseWithError(i.serveRoutes(routes, a, request)) // CloseWithError returns no error
	}()
	select {
	case <-a.started:
	case <-ctx.Done():
		cancel()
		_ = body.Close()
		return nil, ctx.Err()
	}
	return &http.Response{Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Body: &endedByClosing{body, cancel}, ContentLength: -1, Request: r}, nil
}

// serveRoutes calls the routes. If they panic, the answer breaks off, as it would over HTTP; the
// program continues.
func (i inProcessTransport) serveRoutes(routes http.Handler, a *pipedResponse, r *http.Request) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p != http.ErrAbortHandler {
			i.engine.cfg.Logger.ErrorContext(r.Context(), "a handler panicked", "panic", p, "stack", string(debug.Stack()))
		}
		a.startBody(http.StatusInternalServerError)
		err = fmt.Errorf("the answer broke off: %v", p)
	}()
	routes.ServeHTTP(a, r)
	a.startBody(http.StatusOK)
	return nil
}

// pipedResponse passes on the answer of the routes while they write it.
type pipedResponse struct {
	header  http.Header
	once    sync.Once
	status  int
	sent    http.Header // the header when the answer began
	started chan struct{}
	body    *io.PipeWriter

	payloads *payload.Store
}

// Payloads returns the store of large values, for handlers that print values of users.
func (a *pipedResponse) Payloads() *payload.Store { return a.payloads }

func (a *pipedResponse) Header() http.Header { return a.header }

func (a *pipedResponse) WriteHeader(status int) { a.startBody(status) }

func (a *pipedResponse) startBody(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.started)
	})
}

func (a *pipedResponse) Write(p []byte) (int, error) {
	a.startBody(http.StatusOK)
	return a.body.Write(p)
}

// Flush only starts the answer: everything written is already with the reader.
func (a *pipedResponse) Flush() { a.startBody(http.StatusOK) }

// endedByClosing ends its request when it is closed.
type endedByClosing struct {
	io.ReadCloser
	end context.CancelFunc
}

func (b *endedByClosing) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

// newClient returns a client of the member in this process. It does not retry: the program gets
// ErrBusy.
func (e *Engine) newClient() (*client.Client, error) {
	return client.New("http://troupe.internal", client.Options{HTTPClient: &http.Client{Transport: inProcessTransport{e}}, Retries: -1})
}

// currentRoutes returns the /v1 routes of the present life of the member. They are created on the
// first call.
func (e *Engine) currentRoutes(ctx context.Context) (http.Handler, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ensureMember(ctx); err != nil {
		return nil, err
	}
	asked := *e.currentEngine.Load()
	if e.own.routes != nil && e.own.engine == asked {
		return e.own.routes, nil
	}
	routes, err := e.newV1Routes(asked)
	if err != nil {
		return nil, err
	}
	e.own = ownRoutes{asked, routes}
	return routes, nil
}

// ownRoutes are the routes that the program itself calls, in one life of the member.
type ownRoutes struct {
	engine engine.Engine
	routes http.Handler
}

// apiMember returns the parts of the member that all families of routes use.
func (e *Engine) apiMember(asked engine.Engine) api.Member {
	return api.Member{Engine: asked, Store: e.store, Reader: e.reader, Registry: e.workers, Logs: e.logs, Payloads: e.payloads,
		Limits: e.cfg.Limits, Secret: e.secrets.Listed, Func: e.functions.Check, WorkerTTL: e.cfg.WorkerTTL, Logger: e.cfg.Logger}
}

func (e *Engine) newV1Routes(asked engine.Engine) (v1.Routes, error) {
	return v1.New(v1.Config{
		Member: e.apiMember(asked), Version: Version(), StoreKind: storeKind(e.cfg.Store),
		Name: e.cfg.Name, TraceURL: e.cfg.TraceURL, LogURL: e.cfg.LogURL, Cluster: e.clusterAdmin(),
		Channels: map[string]v1.Channel{"pgflow:run": pgflow.Runs{Engine: asked, Store: e.store, Reader: e.reader}.Tell},
	})
}
