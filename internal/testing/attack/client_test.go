package attack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

type obj map[string]any

// yaml is a body that is sent unchanged.
type yaml string

// client sends requests to the member.
type client struct {
	base, token string
	http        *http.Client
}

func newClient(base, token string) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 200
	transport.DisableCompression = true
	return &client{base: base, token: token, http: &http.Client{Transport: transport}}
}

// answer is a response. Only the beginning of a long body is kept.
type answer struct {
	what   string
	status int
	body   []byte
	size   int64 // of the body
	took   time.Duration
	err    error // there was no answer, or an incomplete one
}

// keptBytes is the number of bytes kept of a body.
const keptBytes = 128 << 20

func (c *client) ask(ctx context.Context, method, path string, body any) (a answer) {
	a.what = fmt.Sprintf("%s %.80s", method, path)
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		a.err = err
		return a
	}
	resp, err := c.http.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	defer resp.Body.Close()
	a.status = resp.StatusCode
	if a.body, a.err = io.ReadAll(io.LimitReader(resp.Body, keptBytes)); a.err == nil {
		a.size, a.err = io.Copy(io.Discard, resp.Body)
	}
	a.size += int64(len(a.body))
	return a
}

func (c *client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	kind := "application/json"
	var text []byte
	switch b := body.(type) {
	case nil:
	case yaml:
		kind, text = "application/yaml", []byte(b)
	case json.RawMessage:
		text = b
	default:
		var err error
		if text, err = json.Marshal(b); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", kind)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// ok reports success.
func (a answer) ok() bool { return a.err == nil && a.status >= 200 && a.status < 300 }

// busy reports whether the request should be retried.
func (a answer) busy() bool {
	return a.err != nil || a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable
}

// hole returns the error of an answer: a member may refuse a request, but with a reason and without
// failing.
func (a answer) hole() string {
	switch {
	case a.err != nil || a.status < 400:
		return ""
	case a.status >= 500 && a.status != http.StatusServiceUnavailable, !a.explained():
		return a.String()
	}
	return ""
}

// explained reports whether a refusal contains a reason.
func (a answer) explained() bool {
	var said struct{ What, Error, Message string }
	if json.Unmarshal(a.body, &said) == nil {
		return said.What+said.Error+said.Message != ""
	}
	return len(bytes.TrimSpace(a.body)) > 0 && !strings.Contains(string(a.body), "<html")
}

// task returns the id of the started task; "" if none.
func (a answer) task() string {
	var started struct {
		ID  string
		Run struct {
			RunID string `json:"run_id"`
		}
	}
	if !a.ok() || a.into(&started) != nil {
		return ""
	}
	return cmp.Or(started.ID, started.Run.RunID)
}

func (a answer) into(v any) error {
	if a.err != nil {
		return a.err
	}
	return json.Unmarshal(a.body, v)
}

func (a answer) String() string {
	return fmt.Sprintf("%s: %d %.200s (after %.1f s, %v)", a.what, a.status, a.body, a.took.Seconds(), a.err)
}

// insist retries while the member is busy or unreachable.
func (c *client) insist(ctx context.Context, method, path string, body any) answer {
	for {
		a := c.ask(ctx, method, path, body)
		if !a.busy() || ctx.Err() != nil {
			return a
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// pause waits between two tries; it ends early with ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
