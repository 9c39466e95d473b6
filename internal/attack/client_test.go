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

// yaml is a body that is sent as it is.
type yaml string

// client speaks to the member, once per call.
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

// answer is what came back. Of a long body the beginning is kept.
type answer struct {
	what   string
	status int
	body   []byte
	size   int64 // of the body
	took   time.Duration
	err    error // there was no answer, or only a part of one
}

// keptBytes of an answer are kept.
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

// ok says that it was done.
func (a answer) ok() bool { return a.err == nil && a.status >= 200 && a.status < 300 }

// busy says that it is to be asked again.
func (a answer) busy() bool {
	return a.err != nil || a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable
}

// hole says what is wrong with an answer, whoever it is for: a member may refuse, but it says why
// and does not fail.
func (a answer) hole() string {
	switch {
	case a.err != nil || a.status < 400:
		return ""
	case a.status >= 500 && a.status != http.StatusServiceUnavailable, !a.explained():
		return a.String()
	}
	return ""
}

// explained reports whether a refusal has words for whoever is refused.
func (a answer) explained() bool {
	var said struct{ What, Error, Message string }
	if json.Unmarshal(a.body, &said) == nil {
		return said.What+said.Error+said.Message != ""
	}
	return len(bytes.TrimSpace(a.body)) > 0 && !strings.Contains(string(a.body), "<html")
}

// task is the one that was started, "" when none was.
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

// insist asks again while the member is busy or cannot be reached.
func (c *client) insist(ctx context.Context, method, path string, body any) answer {
	for {
		a := c.ask(ctx, method, path, body)
		if !a.busy() || ctx.Err() != nil {
			return a
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// pause is between two tries; it ends early with ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
