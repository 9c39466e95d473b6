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

// engineClient sends requests to one member of the engine, and to the next member if that one
// fails.
type engineClient struct {
	bases     []string
	failovers atomic.Int64 // number of changes to the next member
	token     string
	client    *http.Client
	trustErr  error // error of the files in Config.Trust
}

func newEngineClient(cfg Config) *engineClient {
	s := &engineClient{bases: cfg.serverAddresses(), token: cfg.Token}
	transport, err := cfg.Trust.Transport()
	if err != nil {
		s.trustErr = fmt.Errorf("worker: %w", err)
		transport = &http.Transport{}
	}
	// Over https requests share a connection. If a network device has silently dropped that
	// connection, all requests would hang until the system's timeout. So the connection is closed
	// after three heartbeat intervals without data.
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: cfg.Heartbeat, PingTimeout: max(2*cfg.Heartbeat, minHeartbeatTimeout)}
	transport.MaxIdleConnsPerHost = cfg.Concurrency + 8 // polls and heartbeats beside the jobs
	s.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

func (s *engineClient) close() { s.client.CloseIdleConnections() }

// statusError is an answer with any status except 200, 201 and 204.
type statusError struct {
	status     int
	text       string
	retryAfter time.Duration
	fromEngine bool // sent by the engine, not by a proxy
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the engine answered %d %s: %s", e.status, http.StatusText(e.status), e.text)
}

// ErrDenied is the error of Run when the engine rejects the worker's token, requires a token, or
// requires another role. A retry would fail, too.
var ErrDenied = errors.New("worker: the engine does not let this worker in")

// deniedError returns the error that ends the worker if the engine rejects its token, else nil.
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

// statusOf returns the status of an answer, or 0 for any other error.
func statusOf(err error) int {
	var e *statusError
	if errors.As(err, &e) {
		return e.status
	}
	return 0
}

// isPermanent reports whether the engine would reject the same request again. A proxy may answer
// for a while instead of the engine; its answers are permanent only if the request is too large.
// Denials do not count here, because the registration and the heartbeats handle them.
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

// isFromEngine reports whether the engine itself sent the answer.
func isFromEngine(err error) bool {
	var e *statusError
	return errors.As(err, &e) && e.fromEngine
}

// isResultRefused reports whether the engine rejected the result itself.
func isResultRefused(err error) bool {
	status := statusOf(err)
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}

func (s *engineClient) postJSON(ctx context.Context, path string, in, out any, limit time.Duration) error {
	return s.callEngine(ctx, http.MethodPost, path, in, out, limit)
}

// callEngine sends in as JSON, unless in is nil, and decodes the answer into out, unless the answer
// is empty (204). Every request may be repeated. So if a member fails, the next member is tried,
// within the time limit.
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
		s.failovers.CompareAndSwap(turn, turn+1) // unless another call has changed it already
		if asked >= len(s.bases) || limited.Err() != nil {
			return err
		}
	}
}

// isUnreachable reports whether a member could not be reached, or could not do its work.
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

// asEncodingJSON decodes answers by the rules of encoding/json, but in one pass. encoding/json
// first scans the whole text, and then each value again.
var asEncodingJSON = jsonv1.DefaultOptionsV1()

func readAnswer(resp *http.Response, answer []byte, out any) error {
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return nil
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		return readRefusal(resp, answer)
	}
	if err := experimental.Unmarshal(answer, out, asEncodingJSON); err != nil {
		return fmt.Errorf("%s does not answer as an engine does: %w", resp.Request.URL.Redacted(), err)
	}
	return nil
}

func readRefusal(resp *http.Response, answer []byte) *statusError {
	var p wire.Problem
	known := json.Unmarshal(answer, &p) == nil && p.Code != ""
	if p.Detail == "" {
		p.Detail = fmt.Sprintf("%.200q", answer)
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return &statusError{resp.StatusCode, p.Detail, time.Duration(min(seconds, math.MaxInt32)) * time.Second, known}
}

// backoff computes the pauses between retries. Each pause is longer than the one before, with a
// random part.
type backoff struct{ next time.Duration }

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// waitNext waits for the next pause, or longer if the engine sent Retry-After. It returns false if
// ctx ended first.
func (b *backoff) waitNext(ctx context.Context, err error) bool {
	b.next = min(max(2*b.next, firstPause), maxPause)
	pause := b.next/2 + rand.N(b.next/2)
	var e *statusError
	if errors.As(err, &e) {
		pause = max(pause, min(e.retryAfter, time.Minute))
	}
	return sleepContext(ctx, pause)
}
