package troupe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sink stores spans, unless it refuses them.
type sink struct {
	mu      sync.Mutex
	spans   []Span
	refuses bool
}

func (s *sink) Tell(_ context.Context, spans []Span) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses {
		return errors.New("no")
	}
	s.spans = append(s.spans, spans...)
	return nil
}

// names returns the sorted names of a task's spans.
func (s *sink) names(task string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.spans {
		if span.Task == task {
			names = append(names, span.Name)
		}
	}
	slices.Sort(names)
	return names
}

// spanOf returns the id of a task's span with this name.
func (s *sink) spanOf(task, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.spans {
		if span.Task == task && span.Name == name {
			return span.ID.String()
		}
	}
	return "none"
}

const goodOrBad = `
start: a
nodes:
  a: {exec_type: local_func, func: good or bad}
`

// tellTwo opens a member, runs a task that succeeds and one that fails, and returns their ids after
// the member was closed.
func tellTwo(t *testing.T, cfg Config) (good, bad string) {
	t.Helper()
	cfg.Store = "sqlite:" + t.TempDir() + "/troupe.db"
	e, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	Handle(e, "good or bad", func(_ context.Context, in struct{ Bad bool }) (string, error) {
		if in.Bad {
			return "", errors.New("it is bad")
		}
		return "fine", nil
	})
	require.NoError(t, e.Publish(t.Context(), "good-or-bad", []byte(goodOrBad)))
	for _, to := range []*string{&good, &bad} {
		*to, err = e.Start(t.Context(), "good-or-bad", map[string]bool{"bad": to == &bad},
			WithTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", ""))
		require.NoError(t, err)
		_, err = e.Wait(t.Context(), *to)
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	return good, bad
}

func TestSpansOfATaskAreSentAfterTheCommit(t *testing.T) {
	all := []string{"attempt a", "start good-or-bad", "step a", "task good-or-bad"}
	s := &sink{}
	good, bad := tellTwo(t, Config{Spans: s})
	require.Empty(t, s.names(good), "its caller's trace is not sampled")
	require.Equal(t, all, s.names(bad), "but what has failed is told")

	s = &sink{}
	good, _ = tellTwo(t, Config{Spans: s, TraceLinks: true})
	require.Equal(t, all, s.names(good))
	for _, span := range s.spans {
		if strings.HasPrefix(span.Name, "start ") {
			require.Equal(t, "b7ad6b7169203331", span.Link.Span.String())
			require.Zero(t, span.Parent)
		}
		require.NotEqual(t, "0af7651916cd43dd8448eb211c80319c", span.Trace.String(), "it has a trace of its own")
	}

	s = &sink{}
	good, bad = tellTwo(t, Config{Spans: s, TraceLinks: true, SpanRatio: -1})
	require.Empty(t, s.names(good))
	require.Equal(t, all, s.names(bad))
}

func TestFunctionsGetTheSpansOfTheirAttempts(t *testing.T) {
	const caller = "0af7651916cd43dd8448eb211c80319c"
	for name, tt := range map[string]struct {
		spans  Spans
		traced bool
		want   string
	}{
		"below a caller":               {nil, true, "^00-" + caller + "-[0-9a-f]{16}-01$"},
		"below a caller, with spans":   {&sink{}, true, "^00-" + caller + "-[0-9a-f]{16}-01$"},
		"where the member tells spans": {&sink{}, false, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$"},
		"where nobody traces":          {nil, false, "^$"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Open(t.Context(), Config{Store: "sqlite:" + t.TempDir() + "/troupe.db", Spans: tt.spans})
			require.NoError(t, err)
			e.HandleJSON("trace", func(_ context.Context, j Job) (json.RawMessage, error) { return json.Marshal(j.Trace) })
			require.NoError(t, e.Publish(t.Context(), "one", []byte("nodes: {a: {func: trace}}\n")))
			var how []Option
			if tt.traced {
				how = append(how, WithTrace("00-"+caller+"-b7ad6b7169203331-01", ""))
			}
			id, err := e.Start(t.Context(), "one", nil, how...)
			require.NoError(t, err)
			end, err := e.Wait(t.Context(), id)
			require.NoError(t, err)
			require.NoError(t, e.Close())
			var out struct{ A string }
			require.NoError(t, json.Unmarshal(end.Value, &out))
			require.Regexp(t, tt.want, out.A)
			if s, ok := tt.spans.(*sink); ok {
				require.Contains(t, out.A, "-"+s.spanOf(id, "attempt a")+"-", "what it traces is below the attempt")
			}
		})
	}
}

func TestDurationsHaveExemplarsIfSpansAreSent(t *testing.T) {
	e := serving(t, Config{Store: "sqlite:" + t.TempDir() + "/troupe.db", Spans: &sink{refuses: true}})
	require.NoError(t, e.Publish(t.Context(), "one", []byte("start: a\nnodes:\n  a: {exec_type: local_func, func: no such one}\n")))
	id, err := e.Start(t.Context(), "one", nil, WithTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1"))
	require.NoError(t, err)
	_, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		text := metricsOf(t, e)
		for _, name := range []string{"troupe_task_duration_seconds", "troupe_attempt_duration_seconds"} {
			require.Regexp(t, fmt.Sprintf(`%s_bucket\{.*# \{trace_id="0af7651916cd43dd8448eb211c80319c"\}`, name), text)
		}
		require.Regexp(t, `troupe_spans_dropped_total [1-9]`, text, "what nobody takes is counted")
	}, 20*time.Second, 10*time.Millisecond)
}

// metricsOf reads the metrics in the OpenMetrics format.
func metricsOf(t require.TestingT, e *Engine) string {
	req, err := http.NewRequest(http.MethodGet, "http://"+e.cfg.Listen+"/metrics", nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

func TestPagesGetTheURLsOfTracesAndLogs(t *testing.T) {
	at := Config{Store: "sqlite:" + t.TempDir() + "/troupe.db",
		TraceURL: "https://tempo.example/trace/{trace_id}", LogURL: "http://logs.example/?task={task}"}
	resp, err := http.Get("http://" + serving(t, at).cfg.Listen + "/v1/info")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `"trace_url":"https://tempo.example/trace/{trace_id}","log_url":"http://logs.example/?task={task}"`)
	for _, wrong := range []string{"javascript:alert(1)", "tempo.example/{trace_id}", "http://", "https://%zz"} {
		_, err := Open(t.Context(), Config{Store: "sqlite:" + t.TempDir() + "/troupe.db", TraceURL: wrong})
		require.ErrorContains(t, err, "the URL of traces", wrong)
	}
}

func TestLogLinesOfARequestContainItsTrace(t *testing.T) {
	var said lines
	e := serving(t, Config{Store: "sqlite:" + t.TempDir() + "/troupe.db",
		Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+e.cfg.Listen+"/v1/info", nil)
	require.NoError(t, err)
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Eventually(t, func() bool {
		return strings.Contains(said.String(), "trace_id=0af7651916cd43dd8448eb211c80319c span_id=b7ad6b7169203331")
	}, 20*time.Second, time.Millisecond)
}

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
