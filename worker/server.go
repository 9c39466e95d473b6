package worker

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
	"strconv"
	"sync/atomic"
	"time"

	experimental "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/troupe-engine/troupe/api/wire"
)

const (
	requestTime = 30 * time.Second
	maxBody     = 64 << 20
)

// engineClient is the engine as a worker sees it: one of its members, until that one fails.
type engineClient struct {
	bases     []string
	failovers atomic.Int64 // how often a member was left for the next
	token     string
	client    *http.Client
	trustErr  error // why the files that say whom to believe cannot be used
}

func newEngineClient(cfg Config) *engineClient {
	s := &engineClient{bases: cfg.serverAddresses(), token: cfg.Token}
	transport, err := cfg.Trust.Transport()
	if err != nil {
		s.trustErr = fmt.Errorf("worker: %w", err)
		transport = &http.Transport{}
	}
	// By https requests share a connection. One that has been forgotten between the two would take
	// all that come for as long as the system tries on; it is left when it was silent for as long
	// as three signs of life take.
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: cfg.Heartbeat, PingTimeout: max(2*cfg.Heartbeat, minHeartbeatTimeout)}
	transport.MaxIdleConnsPerHost = cfg.Concurrency + 8 // polls and heartbeats beside the jobs
	s.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

func (s *engineClient) close() { s.client.CloseIdleConnections() }

// statusError is any answer but 200 and 204.
type statusError struct {
	status     int
	text       string
	retryAfter time.Duration
	fromEngine bool // by the engine, and not by something on the way to it
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the engine answered %d %s: %s", e.status, http.StatusText(e.status), e.text)
}

// ErrDenied is how Run ends when the engine does not take the worker's token, wants one, or wants
// one of another role: trying on would be of no use.
var ErrDenied = errors.New("worker: the engine does not let this worker in")

// deniedError reports whether the engine does not take the token, and then how the worker is to
// end.
func (s *engineClient) deniedError(err error) error {
	switch status := statusOf(err); {
	case status == http.StatusForbidden:
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case status != http.StatusUnauthorized:
		return nil
	case s.token == "":
		return fmt.Errorf("%w: it wants a token, and there is none", ErrDenied)
	}
	return fmt.Errorf("%w: the token is wrong", ErrDenied)
}

// statusOf is an answer's status, 0 for an error of another kind.
func statusOf(err error) int {
	var e *statusError
	if errors.As(err, &e) {
		return e.status
	}
	return 0
}

// isPermanent says that the same request will be refused again. Something on the way to the engine
// may send it elsewhere for a while, or not know the way; it is believed only that what is sent is
// too large. Whether the worker is let in is found out by what it says of itself.
func isPermanent(err error) bool {
	var e *statusError
	if !errors.As(err, &e) || e.status < 400 || e.status >= 500 {
		return false
	}
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusForbidden:
		return false
	}
	return e.fromEngine || e.status == http.StatusRequestEntityTooLarge
}

// isFromEngine reports whether it is the engine that has answered so.
func isFromEngine(err error) bool {
	var e *statusError
	return errors.As(err, &e) && e.fromEngine
}

// isResultRefused says that it is the result which the engine did not like.
func isResultRefused(err error) bool {
	status := statusOf(err)
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}

func (s *engineClient) postJSON(ctx context.Context, path string, in, out any, limit time.Duration) error {
	return s.callEngine(ctx, http.MethodPost, path, in, out, limit)
}

// callEngine sends in, if there is something, and reads the answer into out, unless there is none
// (204). Whatever a worker says may be said again, so a member that fails is left for the next one,
// as long as the limit lasts.
func (s *engineClient) callEngine(ctx context.Context, method, path string, in, out any, limit time.Duration) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode a request to %s: %w", path, err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for asked := 1; ; asked++ {
		turn := s.failovers.Load()
		err := s.sendRequest(limited, s.bases[turn%int64(len(s.bases))], method, path, body, out)
		if err == nil || ctx.Err() != nil || !isUnreachable(err) {
			return err
		}
		s.failovers.CompareAndSwap(turn, turn+1) // unless another call has left it already
		if asked >= len(s.bases) || limited.Err() != nil {
			return err
		}
	}
}

// isUnreachable reports whether a member could not be reached, or was not able to do its work.
func isUnreachable(err error) bool {
	var e *statusError
	return !errors.As(err, &e) || e.status == http.StatusServiceUnavailable
}

func (s *engineClient) sendRequest(ctx context.Context, base, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, base+"/v1"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return readAnswer(resp, answer, out)
}

// asEncodingJSON reads an answer as encoding/json does, but once: that first looks through all of
// it, and through each of its values again.
var asEncodingJSON = jsonv1.DefaultOptionsV1()

func readAnswer(resp *http.Response, answer []byte, out any) error {
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return nil
	case resp.StatusCode != http.StatusOK:
		return readRefusal(resp, answer)
	}
	if err := experimental.Unmarshal(answer, out, asEncodingJSON); err != nil {
		return fmt.Errorf("%s does not answer as an engine does: %w", resp.Request.URL.Redacted(), err)
	}
	return nil
}

func readRefusal(resp *http.Response, answer []byte) *statusError {
	var p wire.Problem
	known := json.Unmarshal(answer, &p) == nil && p.Kind != ""
	if p.Detail == "" {
		p.Detail = fmt.Sprintf("%.200q", answer)
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return &statusError{resp.StatusCode, p.Detail, time.Duration(min(seconds, math.MaxInt32)) * time.Second, known}
}

// backoff spaces tries: longer and longer, never in step with others.
type backoff struct{ next time.Duration }

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// waitNext is false when ctx ended first. An engine that says when to come back is heeded.
func (b *backoff) waitNext(ctx context.Context, err error) bool {
	b.next = min(max(2*b.next, firstPause), maxPause)
	pause := b.next/2 + rand.N(b.next/2)
	var e *statusError
	if errors.As(err, &e) {
		pause = max(pause, min(e.retryAfter, time.Minute))
	}
	return sleepContext(ctx, pause)
}
