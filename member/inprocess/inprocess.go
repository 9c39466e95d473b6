// Package inprocess calls the routes of a member in its own process.
//
// The Go client sends its requests to the routes of /v1 through a Transport, without a network. So
// checks, paging and error texts exist in one place, and a program gets the same answers as any
// other client.
package inprocess

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/troupe-engine/troupe/internal/payload"
)

// Transport passes requests of the Go client to the routes of the member in this process.
type Transport struct {
	// Routes returns the routes of the member's current incarnation.
	Routes   func(context.Context) (http.Handler, error)
	Closed   context.Context // ends when the engine is closed
	Payloads *payload.Store  // nil if all values are in the store
	Logger   *slog.Logger
}

// RoundTrip returns when the routes have started their answer. The body can be read while the
// routes write it. Closing the body ends the request.
func (i *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	routes, err := i.Routes(r.Context())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	closed := context.AfterFunc(i.Closed, cancel)
	body, w := io.Pipe()
	a := &pipedResponse{header: http.Header{}, started: make(chan struct{}), body: w, payloads: i.Payloads}
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

// serveRoutes calls the routes. If they panic, the answer is cut off, as over HTTP, and the program
// continues.
func (i *Transport) serveRoutes(routes http.Handler, a *pipedResponse, r *http.Request) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p != http.ErrAbortHandler {
			i.Logger.ErrorContext(r.Context(), "HTTP handler panicked", "panic", p, "stack", string(debug.Stack()))
		}
		a.startBody(http.StatusInternalServerError)
		err = fmt.Errorf("the answer broke off: %v", p)
	}()
	routes.ServeHTTP(a, r)
	a.startBody(http.StatusOK)
	return nil
}

// pipedResponse passes the answer of the routes to the reader while they write it.
type pipedResponse struct {
	header  http.Header
	once    sync.Once
	status  int
	sent    http.Header // the header when the answer began
	started chan struct{}
	body    *io.PipeWriter

	payloads *payload.Store
}

// Payloads returns the store of large values. Handlers use it to expand the values of users.
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

// Flush only starts the answer, because the reader already has everything that was written.
func (a *pipedResponse) Flush() { a.startBody(http.StatusOK) }

// endedByClosing is a body that ends its request when it is closed.
type endedByClosing struct {
	io.ReadCloser
	end context.CancelFunc
}

func (b *endedByClosing) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
