package e2e

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

// client asks until it is answered, whatever happens to the member meanwhile.
type client struct {
	base    string
	patient bool // the store may be down: an internal error is asked again, too
	http    *http.Client
	again   atomic.Int64 // how often a request had to be sent again
}

const (
	answerTime = 5 * time.Second // beside the time a request waits
	againPause = 50 * time.Millisecond
)

func newClient(base string) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 1000
	return &client{base: base, http: &http.Client{Transport: transport}}
}

// request is sent again and again as it is, so whatever has an effect needs a key.
type request struct {
	method, path string
	key          string // Idempotency-Key
	body         any    // JSON, or the bytes as they are
	wait         time.Duration
}

// insist sends a request until it is acknowledged, and reads the answer into out.
func (c *client) insist(ctx context.Context, r request, out any) error {
	for {
		status, answer, err := c.send(ctx, r)
		switch {
		case err == nil && status < 300:
			return json.Unmarshal(answer, out)
		case ctx.Err() != nil:
			return fmt.Errorf("%s %s: %w, last: %d %.200s %v", r.method, r.path, ctx.Err(), status, answer, err)
		case err == nil && !c.mayPass(status):
			return fmt.Errorf("%s %s %s: %d %.500s", r.method, r.path, r.key, status, answer)
		}
		c.again.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(againPause):
		}
	}
}

// mayPass says whether another try may be answered better.
func (c *client) mayPass(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable ||
		c.patient && status == http.StatusInternalServerError
}

func (c *client) send(ctx context.Context, r request) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.wait+answerTime)
	defer cancel()
	body, asItIs := r.body.([]byte)
	if !asItIs && r.body != nil {
		if body, err = json.Marshal(r.body); err != nil {
			return 0, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if asItIs {
		req.Header.Set("Content-Type", "application/yaml")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

func (c *client) publish(ctx context.Context, slug string, definition []byte) error {
	return c.insist(ctx, request{method: "PUT", path: "/v1/flows/" + slug, body: definition}, &wire.Published{})
}

func (c *client) start(ctx context.Context, key, flow string, params any) (wire.Started, error) {
	var started wire.Started
	b, err := json.Marshal(params)
	if err != nil {
		return started, err
	}
	err = c.insist(ctx, request{method: "POST", path: "/v1/tasks", key: key, body: wire.Start{Flow: flow, Params: b}}, &started)
	return started, err
}

// do gives a command; body is nil for all but signal.
func (c *client) do(ctx context.Context, task, command, key string, body any) error {
	return c.insist(ctx, request{method: "POST", path: "/v1/tasks/" + task + "/" + command, key: key, body: body}, &wire.TaskSummary{})
}

// end waits until a task has ended.
func (c *client) end(ctx context.Context, task string) (wire.Task, error) {
	const wait = 5 * time.Second
	for {
		var got wire.Task
		path := fmt.Sprintf("/v1/tasks/%s?wait_ms=%d", task, wait.Milliseconds())
		if err := c.insist(ctx, request{method: "GET", path: path, wait: wait}, &got); err != nil {
			return got, fmt.Errorf("%w: %s", err, c.why(task))
		}
		if !got.EndedAt.IsZero() {
			return got, nil
		}
	}
}

// why asks what a task that does not end is waiting for.
func (c *client) why(task string) string {
	_, answer, err := c.send(context.Background(), request{method: "GET", path: "/v1/tasks/" + task + "/waiting"})
	return fmt.Sprintf("%s %v", answer, err)
}
