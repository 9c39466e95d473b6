// Package client is the Go client of /v1. Its types are those of api/wire.
//
// Every refusal is an *Error with the fault, its place, and advice. Requests without a second
// effect are retried if the server is busy, stops or is unreachable. If the client knows several
// members, it tries another one immediately. Watch and WatchAll resume after a broken connection,
// also on another member, without gaps or repeated events.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// Options configures a Client. The zero value is useful.
type Options struct {
	Token string // sent as "Authorization: Bearer …"
	By    string // name of the caller in the history of tasks that it signals
	// should have no timeout, because some answers take long on purpose
	HTTPClient *http.Client
	Trust      Trust // trust for https; cannot be combined with HTTPClient
	// Retries is the maximum number of retries of a request, each with as many addresses as needed.
	// 0 means 6, and a negative number means none. A Watch reconnects until its context ends.
	Retries int
	// Timeout bounds one try of a request, in addition to intended waits of the server. The default
	// is 60 s, or 20 s if there are other addresses to try.
	Timeout time.Duration
	// Silence is how long a stream may send nothing, not even a heartbeat, before a Watch
	// reconnects. Default 45 s.
	Silence time.Duration
}

// Client calls one server, or the members of one cluster. It is safe for concurrent use.
type Client struct {
	servers *serverList
	opts    Options
}

// New returns a client of the server at an address such as http://127.0.0.1:8070. Addresses of
// several members are separated by commas. The client uses one address until the member is
// unreachable or not ready (503), and then the next one.
func New(addresses string, o Options) (*Client, error) {
	to, err := parseServers(addresses)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	several := len(to.all) > 1
	if err := o.chooseHTTPClient(several); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	o.Token = strings.TrimSpace(o.Token) // a token from a file ends with a newline
	if o.Retries == 0 {
		o.Retries = 6
	}
	if o.Timeout <= 0 && several {
		o.Timeout = 20 * time.Second
	} else if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.Silence <= 0 {
		o.Silence = 45 * time.Second
	}
	return &Client{servers: to, opts: o}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.opts.HTTPClient.CloseIdleConnections() }

// apiCall describes a request before it is sent.
type apiCall struct {
	method, path string
	query        url.Values
	header       http.Header
	body         []byte
	kind         string        // Content-Type of the body
	repeatable   bool          // repeating it has no second effect
	wait         time.Duration // time that the server intentionally waits
}

// doCall sends a call, with retries, and decodes the answer. It pauses before it tries the same
// server again.
func doCall[T any](ctx context.Context, c *Client, r apiCall) (*T, error) {
	asked := 1 // addresses tried since the last pause
	for try := 0; ; {
		turn := c.servers.currentTurn()
		answer, err := callOnce[T](ctx, c, turn, r)
		if err == nil {
			return answer, nil
		}
		other := c.servers.leaveServer(ctx, turn, err)
		switch {
		case c.opts.Retries < 0 || ctx.Err() != nil || !r.mayRepeat(err):
		case other && asked < len(c.servers.all):
			asked++
			continue
		case try < c.opts.Retries && sleepContext(ctx, backOff(try, err)):
			try, asked = try+1, 1
			continue
		}
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
}

func callOnce[T any](ctx context.Context, c *Client, turn int64, r apiCall) (*T, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout+r.wait)
	defer cancel()
	resp, err := c.sendCall(ctx, turn, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer T
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return &answer, nil
}

// sendCall sends a call once. It returns the response if the status is a success, and an *Error
// otherwise.
func (c *Client) sendCall(ctx context.Context, turn int64, r apiCall) (*http.Response, error) {
	address := c.servers.addressAt(turn) + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	if c.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
	resp, err := c.opts.HTTPClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	return resp, nil
}

// mayRepeat reports whether a call may be sent again after an error. A refused connection never had
// an effect.
func (r *apiCall) mayRepeat(err error) bool {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return true
	}
	var refused *Error
	if errors.As(err, &refused) {
		return r.repeatable && isTemporary(refused.Status)
	}
	return r.repeatable && !isDistrusted(err)
}

// firstPause and maxPause bound the pause between two tries.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// backOff returns the pause before the next try. It grows with each try and has jitter, and is at
// least the server's Retry-After.
func backOff(try int, err error) time.Duration {
	pause := min(firstPause<<min(try, 10), maxPause)
	pause = pause/2 + rand.N(pause/2)
	var refused *Error
	if errors.As(err, &refused) {
		pause = max(pause, min(refused.RetryAfter, maxPause))
	}
	return pause
}

// encodeBody encodes a body as JSON without HTML escaping, so that values of users stay unchanged.
func encodeBody(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

func sleepContext(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Error is a refusal by the server. It contains the fault, its place, and advice; programs use its
// code.
type Error struct {
	wire.Problem
	RetryAfter time.Duration // Retry-After of the server; 0 if absent
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, e.Title)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	for _, p := range e.Problems {
		text += fmt.Sprintf("\n  %d:%d: %s: %s: %s", p.Line, p.Column, p.Severity, p.Path, p.Message)
	}
	for _, f := range e.Errors {
		text += fmt.Sprintf("\n  %s: %s", f.Field, f.Message)
	}
	return text
}

func isTemporary(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// KindOf returns the kind of a refusal (invalid, not_found, conflict, limit, busy, denied,
// internal), or "" for any other error.
func KindOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// maxProblem is the maximum number of bytes to read of a refusal.
const maxProblem = 1 << 20

func readError(resp *http.Response) error {
	e := &Error{}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem)) // missing fields are filled in below
	var plain struct{ Error string }
	if json.Unmarshal(b, &e.Problem) != nil || e.Code == "" {
		_ = json.Unmarshal(b, &plain) // the form of errors outside /v1; a proxy may send anything
		e.Message, e.Detail = plain.Error, plain.Error
		e.Code = kindOf(resp.StatusCode)
	}
	if bytes.Contains(b, []byte("HTTP request to an HTTPS server")) { // text of Go servers
		e.Message, e.Detail, e.Hint = "this address speaks TLS",
			"this address speaks TLS: write https://", "write https:// in place of http://"
	}
	e.Status = resp.StatusCode
	if e.Title == "" {
		e.Title = http.StatusText(e.Status)
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(min(s, math.MaxInt32)) * time.Second
	}
	return e
}

func kindOf(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "denied"
	case http.StatusNotFound:
		return "not_found"
	case http.StatusConflict:
		return "conflict"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return "busy"
	}
	if status < http.StatusInternalServerError {
		return "invalid"
	}
	return "internal"
}
