package workers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/carriers/internal/reach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// newClient returns a client that connects only to allowed addresses. It keeps enough connections
// for thousands of short calls per second to one worker.
func newClient(networks reach.Networks, trust func() *tls.Config) *http.Client {
	dialer := networks.Dialer("workers")
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		MaxIdleConnsPerHost:    512,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
	if trust != nil {
		transport.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialer.Timeout+transport.TLSHandshakeTimeout)
			defer cancel()
			return (&tls.Dialer{NetDialer: dialer, Config: trust()}).DialContext(ctx, network, addr)
		}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// workerCall is a job that is offered to one worker after another.
type workerCall struct {
	job     *flow.Job
	path    string // path of the service
	body    []byte
	timeout time.Duration
}

func newCall(job *flow.Job) *workerCall {
	return &workerCall{job: job, path: url.PathEscape(job.Exec.Service), body: carriers.Body(job),
		timeout: flow.Milliseconds(job.TimeoutMS)}
}

// jobHeader returns the header of a job's request. With Idempotency-Key, the HTTP client retries a
// request on a connection that the worker just closed.
func jobHeader(job *flow.Job) http.Header {
	h := http.Header{
		"Content-Type": {"application/json"}, "Idempotency-Key": {job.Key()}, "Troupe-Job": {job.ID()},
		"Troupe-Task": {job.Task}, "Troupe-Step": {headerText(job.Step())}, "Troupe-Attempt": {strconv.Itoa(job.Attempt)},
		"Traceparent": {trace.Parent(job.Task, job.Traced, job.Address)},
		"Troupe-Unit": {strconv.Itoa(job.Unit)}, "Troupe-Units": {strconv.Itoa(max(job.Units, 1))},
	}
	if state := trace.State(job.Traced); state != "" {
		h.Set("Tracestate", state)
	}
	if len(job.Exec.Labels) > 0 {
		h.Set("Troupe-Labels", headerList(job.Exec.Labels))
	}
	if slug := slugOf(job); slug != "" {
		h.Set("Troupe-Flow", headerText(slug))
	}
	return h
}

// headerText escapes text for a header, as in the path of a URL.
func headerText(text string) string { return (&url.URL{Path: text}).EscapedPath() }

// headerList escapes texts for a header that lists them with commas.
func headerList(texts []string) string {
	escaped := make([]string, len(texts))
	for i, text := range texts {
		escaped[i] = url.PathEscape(text)
	}
	return strings.Join(escaped, ",")
}

// errNotAnswered means that the response does not come from a worker, so the next worker is called.
var errNotAnswered = errors.New("no answer of a worker")

// callWorker calls one worker. An error means that the worker gave no answer.
func (r *Registry) callWorker(ctx context.Context, w *registeredWorker, c *workerCall) (flow.Report, error) {
	w.calls.Add(1)
	defer w.calls.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, max(c.timeout, r.opts.CallTimeout))
	defer cancel()
	if w.takesBatches.Load() && len(c.body) <= largeCall {
		rep, err := r.callInBatch(ctx, w, c)
		if !errors.Is(err, errNoBatches) {
			return rep, err
		}
	}
	return r.callSingly(ctx, w, c)
}

func (r *Registry) callSingly(ctx context.Context, w *registeredWorker, c *workerCall) (flow.Report, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.execURL()+c.path, bytes.NewReader(c.body))
	if err != nil {
		return flow.Report{}, err
	}
	req.Header = jobHeader(c.job)
	if w.Secret != "" {
		req.Header.Set("Authorization", "Bearer "+w.Secret)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return flow.Report{}, err
	}
	defer resp.Body.Close()
	if resp.Header.Get(headerBatch) != "" {
		w.takesBatches.Store(true)
	}
	buf := bodies.Get().(*bytes.Buffer)
	defer giveBody(buf)
	if _, err := buf.ReadFrom(io.LimitReader(resp.Body, int64(r.opts.MaxAnswer)+1)); err != nil {
		return flow.Report{}, err
	}
	rep := flow.Report{Worker: w.ID, URL: w.URL}
	if buf.Len() > r.opts.MaxAnswer {
		rep.Error = tooLarge(r.opts.MaxAnswer)
		return rep, nil
	}
	return rep, readAnswer(&rep, resp, buf.Bytes())
}

func tooLarge(most int) string {
	return fmt.Sprintf("the worker's answer is larger than %d bytes", most)
}

// readAnswer fills in a worker's answer, regardless of its HTTP status.
func readAnswer(rep *flow.Report, resp *http.Response, body []byte) error {
	var answer struct {
		Result  json.RawMessage `json:"result"`
		Error   string          `json:"error"`
		Details json.RawMessage `json:"details"`
		Metrics json.RawMessage `json:"metrics"`
		Fatal   bool            `json:"fatal"`
	}
	redirect := resp.StatusCode >= 300 && resp.StatusCode < 400
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); redirect || len(trimmed) == 0 || trimmed[0] != '{' {
		return fmt.Errorf("%w: status %s without a JSON object", errNotAnswered, resp.Status)
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		// The worker has done the job, so no other worker may do it again.
		rep.Error = fmt.Sprintf("the worker answered %s with what is no answer in JSON (%v)%s", resp.Status, err, answerExcerpt(body))
		return nil
	}
	rep.Metrics = answer.Metrics
	switch {
	case answer.Error != "":
		rep.Error, rep.Details, rep.Fatal = answer.Error, answer.Details, answer.Fatal
	case resp.StatusCode >= 400:
		rep.Error = "the worker answered " + resp.Status + " without an error text"
	default:
		rep.Output = answer.Result
	}
	return nil
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func giveBody(b *bytes.Buffer) {
	if b.Cap() <= 64<<10 {
		b.Reset()
		bodies.Put(b)
	}
}
