package errands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// Client repeats requests until they are answered, whatever happens to the members. Each request
// goes to the next member.
type Client struct {
	Bases   []string
	Patient bool // also retry internal errors, because the store may be down
	HTTP    *http.Client
	Again   atomic.Int64 // number of repeated requests

	turn atomic.Uint64
}

const (
	answerTime = 5 * time.Second // in addition to the time a request waits
	retryPause = 50 * time.Millisecond
)

// NewClient returns a client of the members at the given URLs.
func NewClient(bases ...string) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 1000
	return &Client{Bases: bases, HTTP: &http.Client{Transport: transport}}
}

// Request is a request that is repeated unchanged, so a request with an effect needs a key.
type Request struct {
	Method, Path string
	Key          string // Idempotency-Key header
	Body         any    // value to be sent as JSON, or raw bytes
	Wait         time.Duration
}

// Insist sends a request until it is acknowledged and decodes the answer into out.
func (c *Client) Insist(ctx context.Context, r Request, out any) error {
	for {
		status, answer, err := c.Send(ctx, r)
		switch {
		case err == nil && status < 300:
			return json.Unmarshal(answer, out)
		case ctx.Err() != nil:
			return fmt.Errorf("%s %s: %w, last: %d %.200s %v", r.Method, r.Path, ctx.Err(), status, answer, err)
		case err == nil && !c.isTransient(status):
			return fmt.Errorf("%s %s %s: %d %.500s", r.Method, r.Path, r.Key, status, answer)
		}
		c.Again.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// isTransient reports whether a retry may succeed.
func (c *Client) isTransient(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable ||
		c.Patient && status == http.StatusInternalServerError
}

// Send sends a request once.
func (c *Client) Send(ctx context.Context, r Request) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Wait+answerTime)
	defer cancel()
	body, asItIs := r.Body.([]byte)
	if !asItIs && r.Body != nil {
		if body, err = json.Marshal(r.Body); err != nil {
			return 0, nil, err
		}
	}
	base := c.Bases[c.turn.Add(1)%uint64(len(c.Bases))]
	req, err := http.NewRequestWithContext(ctx, r.Method, base+r.Path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if asItIs {
		req.Header.Set("Content-Type", "application/yaml")
	}
	if r.Key != "" {
		req.Header.Set("Idempotency-Key", r.Key)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// Publish publishes a definition in YAML.
func (c *Client) Publish(ctx context.Context, slug string, definition []byte) error {
	return c.Insist(ctx, Request{Method: "PUT", Path: "/v1/flows/" + slug, Body: definition}, &wire.PublishResult{})
}

// Start starts a task.
func (c *Client) Start(ctx context.Context, key, flow string, params any) (wire.StartResult, error) {
	var started wire.StartResult
	b, err := json.Marshal(params)
	if err != nil {
		return started, err
	}
	err = c.Insist(ctx, Request{Method: "POST", Path: "/v1/tasks", Key: key, Body: wire.StartRequest{Flow: flow, Params: b}}, &started)
	return started, err
}

// Do sends a command to a task; body is nil for all commands except signal.
func (c *Client) Do(ctx context.Context, task, command, key string, body any) error {
	return c.Insist(ctx, Request{Method: "POST", Path: "/v1/tasks/" + task + "/" + command, Key: key, Body: body}, &wire.TaskSummary{})
}

// End waits until a task has ended.
func (c *Client) End(ctx context.Context, task string) (wire.Task, error) {
	const wait = 5 * time.Second
	for {
		var got wire.Task
		path := fmt.Sprintf("/v1/tasks/%s?wait_ms=%d", task, wait.Milliseconds())
		if err := c.Insist(ctx, Request{Method: "GET", Path: path, Wait: wait}, &got); err != nil {
			return got, fmt.Errorf("%w: %s", err, c.Why(task))
		}
		if !got.EndedAt.IsZero() {
			return got, nil
		}
	}
}

// Why returns the task's reasons for waiting, for error messages.
func (c *Client) Why(task string) string {
	_, answer, err := c.Send(context.Background(), Request{Method: "GET", Path: "/v1/tasks/" + task + "/waiting"})
	return fmt.Sprintf("%s %v", answer, err)
}
