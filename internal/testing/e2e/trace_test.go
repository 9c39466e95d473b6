package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/worker"
)

const threeWays = `
start: push
nodes:
  push: {service: pushed}
  attach: {service: attached}
  pull: {service: pulled, exec_type: queue}
edges:
  - {from: push, action: default, to: attach}
  - {from: attach, action: default, to: pull}
`

// spanStore is an OpenTelemetry collector that keeps the spans of each trace by id.
type spanStore struct {
	mu     sync.Mutex
	traces map[string]map[string]*tracepb.Span
	broken []string
}

func newSpanStore(t *testing.T) (*spanStore, string) {
	c := &spanStore{traces: map[string]map[string]*tracepb.Span{}}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	return c, s.URL
}

func (c *spanStore) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var sent collectpb.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(body, &sent)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.URL.Path != "/v1/traces" {
		c.broken = append(c.broken, fmt.Sprint(r.URL.Path, err))
	}
	for _, resource := range sent.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.keep(span)
			}
		}
	}
}

// keep adds a span. A repeated span must be equal to the first.
func (c *spanStore) keep(span *tracepb.Span) {
	trace, id := hex.EncodeToString(span.GetTraceId()), hex.EncodeToString(span.GetSpanId())
	if c.traces[trace] == nil {
		c.traces[trace] = map[string]*tracepb.Span{}
	}
	if before := c.traces[trace][id]; before != nil && !proto.Equal(before, span) {
		c.broken = append(c.broken, fmt.Sprint("told in two ways: ", before, " and ", span))
	}
	c.traces[trace][id] = span
}

// named returns the number of spans of a trace with a name.
func (c *spanStore) named(trace, name string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.traces[trace] {
		if strings.HasPrefix(span.GetName(), name) {
			n++
		}
	}
	return n
}

// missing returns the parents in a trace that are neither present nor the caller's.
func (c *spanStore) missing(trace, caller string) (parents []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.traces[trace] {
		parent := hex.EncodeToString(span.GetParentSpanId())
		if parent != caller && c.traces[trace][parent] == nil {
			parents = append(parents, parent+" of "+span.GetName())
		}
	}
	return parents
}

// handed are the spans passed to workers.
type handed struct {
	mu      sync.Mutex
	parents []string
	release chan struct{} // pulled jobs wait for it
}

func (h *handed) handle(ctx context.Context, job worker.Job) (any, error) {
	h.mu.Lock()
	h.parents = append(h.parents, job.Trace)
	h.mu.Unlock()
	if job.Service == "pulled" {
		select {
		case <-h.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return "done", nil
}

// works runs a worker in this process until the test ends.
func (h *handed) works(t *testing.T, service string, cfg worker.Config) {
	cfg.ID, cfg.Logger = service, slog.New(slog.DiscardHandler)
	w := worker.New(cfg)
	w.Handle(service, h.handle)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
}

const callersSpan = "b7ad6b7169203331"

// startTraced starts a task in a trace with the given number.
func startTraced(t *testing.T, base string, n int) (trace string) {
	trace = fmt.Sprintf("%032x", n+1)
	body, err := json.Marshal(map[string]string{"flow": "three-ways"})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/tasks", bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-"+trace+"-"+callersSpan+"-01")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	return trace
}

func TestTaskHasOneTreeOfSpansDespiteAKilledMember(t *testing.T) {
	collector, endpoint := newSpanStore(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
	s := newStage(t, pgtest.DSN(t))
	m := s.together(3)
	servers := "http://" + strings.Join(m.addresses, ",http://")
	h := &handed{release: make(chan struct{})}
	h.works(t, "pushed", worker.Config{Server: servers, Push: true, URL: "http://127.0.0.1:0"})
	h.works(t, "attached", worker.Config{Server: servers, Attach: true})
	h.works(t, "pulled", worker.Config{Server: servers, Pull: true, Concurrency: 32})
	c, err := client.New(servers, client.Options{})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Publish(t.Context(), "three-ways", []byte(threeWays))
	require.NoError(t, err)

	require.EventuallyWithT(t, func(t *assert.CollectT) {
		known, err := c.Workers(context.Background())
		require.NoError(t, err)
		var ids []string
		for _, w := range known {
			ids = append(ids, w.ID)
		}
		require.Subset(t, ids, []string{"pushed", "attached", "pulled"})
	}, patience, 20*time.Millisecond)

	const tasks = 9 // so that every killed member owns some
	var traces []string
	for n := range tasks {
		traces = append(traces, startTraced(t, "http://"+m.addresses[n%3], n))
	}
	each := func(most int, names ...string) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			for _, trace := range traces {
				for _, name := range names {
					require.Equal(t, most, collector.named(trace, name), "%s in %s", name, trace)
				}
			}
		}, patience, 20*time.Millisecond)
	}
	each(1, "start three-ways", "attempt push", "step push", "attempt attach", "step attach")
	m.processes[0].Kill()
	close(h.release)
	each(1, "attempt pull", "step pull", "task three-ways")
	for _, member := range m.processes[1:] {
		require.NoError(t, member.Stop(patience))
	}

	for _, trace := range traces {
		require.Empty(t, collector.missing(trace, callersSpan), "of %s", trace)
		require.Equal(t, 8, collector.named(trace, ""), "of %s", trace)
	}
	require.Empty(t, collector.broken)
	require.Len(t, collector.traces, tasks, "a task is in one trace")
	h.mu.Lock()
	defer h.mu.Unlock()
	require.GreaterOrEqual(t, len(h.parents), 3*tasks)
	for _, parent := range h.parents {
		parts := strings.Split(parent, "-")
		require.Len(t, parts, 4)
		require.Contains(t, collector.traces[parts[1]], parts[2], "what a worker is told is the id of a span that is there")
	}
}
