package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/dialect/pgflow/pgflowhttp"
	"github.com/troupe-engine/troupe/dialect/pocketflow/pocketflowhttp"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// serving is a server on a real member, and how to end it.
type serving struct {
	*api.Server
	url   string
	leave context.CancelFunc
	left  chan error
	store persistence.Store
}

func serve(t *testing.T, cfg api.Config, prepare ...func(*api.Server)) *serving {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	registry, err := workers.Open(t.Context(), store, workers.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, registry.Close(context.Background())) })
	member, err := actors.Start(t.Context(), actors.Config{Store: store, Lease: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, member.Stop(context.Background())) })

	cfg.Engine, cfg.Store, cfg.Registry, cfg.Collectors = member, store, registry, member.Collectors()
	cfg.Reader = persistence.NewReader(store, flow.Limits{})
	cfg.Families = append(cfg.Families, pocketflowhttp.New(cfg.Member), pgflowhttp.New(cfg.Member))
	s := &serving{left: make(chan error, 1), store: store}
	s.Server, err = api.New(cfg)
	require.NoError(t, err)
	for _, p := range prepare {
		p(s.Server)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.url = "http://" + l.Addr().String()
	ctx, leave := context.WithCancel(t.Context())
	s.leave = leave
	go func() { s.left <- s.Serve(ctx, l); close(s.left) }()
	t.Cleanup(func() { leave(); <-s.left })
	return s
}

func (s *serving) do(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(b)
}

func TestRequestsHaveIDs(t *testing.T) {
	s := serve(t, api.Config{})
	resp, _ := s.do(t, "GET", "/healthz", "")
	require.NotEmpty(t, resp.Header.Get("X-Request-Id"))
	resp, _ = s.do(t, "GET", "/healthz", "", "X-Request-Id", "mine-1")
	require.Equal(t, "mine-1", resp.Header.Get("X-Request-Id"))
	resp, _ = s.do(t, "GET", "/healthz", "", "X-Request-Id", strings.Repeat("x", 200))
	require.Less(t, len(resp.Header.Get("X-Request-Id")), 100)
}

// v1 serves everything below /v1/ instead of the real routes.
type v1 struct{ http.Handler }

func (v v1) Mount(s *api.Server) {
	s.MountOpen("/v1/", api.ForPages(s.NeedToken(v)))
	s.TakesDefinitions("/v1/validate", "/v1/flows", "/v1/flows/")
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

func TestLogsShowRequestsWithoutPayloads(t *testing.T) {
	var log lines
	s := serve(t, api.Config{Member: api.Member{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}})
	s.do(t, "POST", "/api/flows?secret=query", `{"Name":"secret body"}`, "X-Request-Id", "r-1", "Authorization", "Bearer secret")
	require.Contains(t, log.text(), `"method":"POST","route":"/api/flows","status":200`)
	require.Contains(t, log.text(), `"request":"r-1"`)
	require.NotContains(t, log.text(), "secret")
}

func TestAPanicAffectsNoOtherRequest(t *testing.T) {
	var log lines
	s := serve(t, api.Config{Member: api.Member{Logger: slog.New(slog.NewJSONHandler(&log, nil))}}, func(s *api.Server) {
		s.Mount("/panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") }))
	})
	resp, body := s.do(t, "GET", "/panic", "")
	require.Equal(t, 500, resp.StatusCode)
	require.NotContains(t, body, "a bug")
	require.Contains(t, log.text(), "a bug")
	resp, _ = s.do(t, "GET", "/healthz", "")
	require.Equal(t, 200, resp.StatusCode)
}

func TestBodiesAreBounded(t *testing.T) {
	s := serve(t, api.Config{Member: api.Member{MaxBody: 1000}})
	resp, body := s.do(t, "POST", "/api/flows", `{"Name":"`+strings.Repeat("x", 2000)+`"}`)
	require.Equal(t, 413, resp.StatusCode)
	require.Contains(t, body, "the body is larger than 1000 bytes")
	require.Contains(t, body, "--max-value")
}

func TestApartHandlersHaveNoLimitsOfTheShell(t *testing.T) {
	heard := make(chan int, 1)
	apart := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		_ = http.NewResponseController(w).Flush()
		heard <- len(b)
		<-r.Context().Done()
	})
	s := serve(t, api.Config{Member: api.Member{MaxBody: 10}, ReadTimeout: 500 * time.Millisecond,
		Tokens: []string{"t"}, Apart: map[string]http.Handler{"/apart.v1/": apart}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/apart.v1/Stay", strings.NewReader(strings.Repeat("x", 1000)))
	require.NoError(t, err)
	r.Host = "member-1.elsewhere"
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, resp.StatusCode, "it needs no token, and is asked by whatever name")
	require.Equal(t, 1000, <-heard)
	ended := make(chan error, 1)
	go func() {
		_, err := resp.Body.Read(make([]byte, 1))
		ended <- errors.Join(err, resp.Body.Close())
	}()
	select {
	case <-ended:
		t.Fatal("the request was ended though the server stays")
	case <-time.After(1500 * time.Millisecond): // much longer than other requests may take
	}
	s.leave()
	require.NoError(t, <-s.left)
	require.Error(t, <-ended)
}

func TestAResultMayBeAsLargeAsAValueMay(t *testing.T) {
	limits := flow.Limits{Value: 12 << 20}
	s := serve(t, api.Config{Member: api.Member{Limits: limits}})
	result := `"` + strings.Repeat("x", limits.Value-2) + `"`
	log := strings.Repeat("l", 256<<10)
	resp, body := s.do(t, "POST", "/api/queue/complete", `{"queue_id":"q-task.1.0.1.CmE","result":`+result+`,"log":"`+log+`"}`)
	require.Equal(t, 404, resp.StatusCode, "it was read, and there is no such task")
	require.Contains(t, body, "error")
	resp, _ = s.do(t, "POST", "/api/queue/complete", `{"queue_id":"q-x","result":[`+result+`,`+result+`]}`)
	require.Equal(t, 413, resp.StatusCode)
}

func TestTokensOpenEverythingButTheProbes(t *testing.T) {
	s := serve(t, api.Config{Tokens: []string{"open sesame"}})
	for path, want := range map[string]int{"/api/flows": 401, "/flows": 401, "/metrics": 401, "/healthz": 200, "/readyz": 200} {
		resp, _ := s.do(t, "GET", path, "")
		require.Equal(t, want, resp.StatusCode, path)
		resp, _ = s.do(t, "GET", path, "", "Authorization", "Bearer open sesame")
		require.Equal(t, 200, resp.StatusCode, path)
	}
	resp, _ := s.do(t, "OPTIONS", "/api/flows", "")
	require.Equal(t, 204, resp.StatusCode, "browsers ask without credentials")
}

func TestUnknownPathsAreProblems(t *testing.T) {
	s := serve(t, api.Config{Tokens: []string{"open sesame"}})
	unknown := []string{"/health", "/livez", "/metrics/x", "/tasks/x/y", "/index.html", "/uix", "/ui/x", "/v1"}
	for _, path := range unknown {
		for _, accept := range []string{"*/*", "text/html"} {
			resp, _ := s.do(t, "GET", path, "", "Accept", accept)
			require.Equal(t, 401, resp.StatusCode, "without a token nobody learns what there is: %s", path)
			resp, body := s.do(t, "GET", path, "", "Accept", accept, "Authorization", "Bearer open sesame")
			require.Equal(t, 404, resp.StatusCode, path)
			require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"), path)
			var p wire.Problem
			require.NoError(t, json.Unmarshal([]byte(body), &p), path)
			require.Equal(t, []any{404, "not_found", "path"}, []any{p.Status, p.Code, p.Field}, path)
			require.Contains(t, p.Hint, "/v1/docs", path)
		}
	}
	resp, _ := s.do(t, "GET", "/api/nope", "")
	require.Equal(t, 401, resp.StatusCode)
}

func TestBrowsersAreRedirectedToPagesAndProgramsAreNot(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page "+r.URL.Path) })
	s := serve(t, api.Config{Tokens: []string{"open sesame"}, Pages: pages})
	for path, page := range map[string]string{"/": "/ui/", "/ui": "/ui/", "/ui/": "/ui/",
		"/ui/tasks/x": "/ui/tasks/x", "/flows": "/ui/flows", "/tasks": "/ui/tasks"} {
		resp, body := s.do(t, "GET", path, "", "Accept", "text/html,*/*")
		require.Equal(t, 200, resp.StatusCode, path)
		require.Equal(t, "page "+page, body, "%s: a page needs no token, what it shows does", path)
	}
	resp, _ := s.do(t, "GET", "/flows", "")
	require.Equal(t, 401, resp.StatusCode, "who does not ask for HTML is a program")
}

func TestWithoutPagesThereAreNone(t *testing.T) {
	s := serve(t, api.Config{})
	for _, path := range []string{"/", "/ui", "/ui/", "/ui/tasks"} {
		resp, _ := s.do(t, "GET", path, "", "Accept", "text/html")
		require.Equal(t, 404, resp.StatusCode, path)
	}
	resp, _ := s.do(t, "GET", "/flows", "", "Accept", "text/html")
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
}

func TestAnUnknownMethodIsAnsweredWithTheAllowedOnes(t *testing.T) {
	s := serve(t, api.Config{Tokens: []string{"open sesame"}, Pages: http.NotFoundHandler()})
	for _, path := range []string{"/", "/ui", "/ui/", "/healthz", "/readyz", "/metrics"} {
		resp, _ := s.do(t, "POST", path, "")
		require.Equal(t, 401, resp.StatusCode, path)
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			resp, body := s.do(t, method, path, "", "Authorization", "Bearer open sesame")
			require.Equal(t, 405, resp.StatusCode, path)
			require.Equal(t, "GET", resp.Header.Get("Allow"), path)
			var p wire.Problem
			require.NoError(t, json.Unmarshal([]byte(body), &p), path)
			require.Equal(t, []any{405, "invalid", "method",
				"the route does not support the method " + method, "use GET"},
				[]any{p.Status, p.Code, p.Field, p.Message, p.Hint}, path)
		}
	}
	for path, allowed := range map[string]string{"/api/flows": "GET,POST,OPTIONS",
		"/tasks/cancel": "POST,OPTIONS", "/api/runs/x": "GET,OPTIONS"} {
		resp, _ := s.do(t, "DELETE", path, "", "Authorization", "Bearer open sesame")
		require.Equal(t, 405, resp.StatusCode, path)
		require.Equal(t, allowed, resp.Header.Get("Allow"), path)
	}
}

func TestAWrongTokenIsReportedDifferentlyFromNone(t *testing.T) {
	s := serve(t, api.Config{Tokens: []string{"open sesame"}})
	resp, body := s.do(t, "GET", "/api/flows", "")
	require.Equal(t, 401, resp.StatusCode)
	require.Equal(t, "Bearer", resp.Header.Get("WWW-Authenticate"))
	require.Contains(t, body, "a bearer token is needed")
	resp, body = s.do(t, "GET", "/api/flows", "", "Authorization", "Bearer open says me")
	require.Equal(t, 401, resp.StatusCode)
	require.Equal(t, `Bearer error="invalid_token"`, resp.Header.Get("WWW-Authenticate"))
	require.Contains(t, body, "the bearer token is wrong")
	require.NotContains(t, body, "says me")
}

func TestForeignPagesAreRefused(t *testing.T) {
	s := serve(t, api.Config{})
	for _, header := range [][2]string{{"Origin", "https://evil.example"}, {"Host", "evil.example"}} {
		resp, body := s.do(t, "POST", "/api/flows", `{"Name":"x"}`, header[0], header[1])
		require.Equal(t, 403, resp.StatusCode)
		require.Contains(t, body, "evil.example")
	}
	resp, _ := s.do(t, "GET", "/healthz", "", "Host", "10.1.2.3")
	require.Equal(t, 200, resp.StatusCode, "probes come by any name")
}

func TestRefusalsAtTheDoorSpeakTheDialectOfTheRoute(t *testing.T) {
	s := serve(t, api.Config{Tokens: []string{"open sesame"}, Families: []api.Family{v1{http.NotFoundHandler()}}}, func(s *api.Server) {
		s.Mount("/v1/panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") }))
	})
	for name, tt := range map[string]struct {
		path   string
		header []string
		status int
		kind   string
	}{
		"no token":         {"/v1/tasks", nil, 401, "denied"},
		"a foreign page":   {"/v1/tasks", []string{"Origin", "https://evil.example"}, 403, "denied"},
		"an unknown host":  {"/v1/tasks", []string{"Host", "evil.example"}, 403, "denied"},
		"an error of ours": {"/v1/panic", []string{"Authorization", "Bearer open sesame"}, 500, "internal"},
	} {
		resp, body := s.do(t, "GET", tt.path, "", append(tt.header, "X-Request-Id", "r-1")...)
		require.Equal(t, tt.status, resp.StatusCode, name)
		require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"), name)
		var p wire.Problem
		require.NoError(t, json.Unmarshal([]byte(body), &p), name)
		require.Equal(t, []any{tt.status, tt.kind, "r-1"}, []any{p.Status, p.Code, p.RequestID}, name)
		require.NotEmpty(t, p.Message, name)
		require.NotEmpty(t, p.Hint, name)
		require.Contains(t, p.Detail, p.Message, name)
	}
	resp, body := s.do(t, "GET", "/api/tasks", "")
	require.Equal(t, 401, resp.StatusCode)
	require.JSONEq(t, `{"error":"a bearer token is needed: send Authorization: Bearer <token>"}`, body)
}

func TestMetricsCoverEngineStoreAndRequests(t *testing.T) {
	inner := http.NewServeMux()
	inner.HandleFunc("GET /v1/tasks/{task}", func(http.ResponseWriter, *http.Request) {})
	s := serve(t, api.Config{Families: []api.Family{v1{inner}}})
	s.do(t, "GET", "/api/flows", "")
	s.do(t, "GET", "/healthz", "")
	s.do(t, "GET", "/v1/tasks/one", "")
	resp, body := s.do(t, "GET", "/metrics", "")
	require.Equal(t, 200, resp.StatusCode)
	for _, name := range []string{"troupe_commit_batch_tasks", "troupe_commit_duration_seconds", "troupe_jobs_ready", "go_goroutines",
		`troupe_http_request_duration_seconds_count{method="GET",route="/api/flows",status="200"} 1`,
		`troupe_http_request_duration_seconds_count{method="GET",route="/healthz",status="200"} 1`,
		`troupe_http_request_duration_seconds_count{method="GET",route="/v1/tasks/{task}",status="200"} 1`} {
		require.Contains(t, body, name)
	}
}

// longPoll starts a poll for which there is no job.
func (s *serving) longPoll(t *testing.T) <-chan int {
	t.Helper()
	status := make(chan int, 1)
	body, err := json.Marshal(map[string]any{"worker_id": "w", "services": []string{"none"}, "wait_ms": 60_000})
	require.NoError(t, err)
	go func() {
		resp, err := http.Post(s.url+"/api/queue/poll", "application/json", bytes.NewReader(body))
		if err != nil {
			status <- 0
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	return status
}

func TestALongPollOutlivesTheLimitsAndEndsWhenTheServerLeaves(t *testing.T) {
	s := serve(t, api.Config{ReadTimeout: time.Second})
	status := s.longPoll(t)
	select {
	case got := <-status:
		t.Fatalf("the poll was answered with %d", got)
	case <-time.After(2500 * time.Millisecond):
	}
	s.leave()
	select {
	case got := <-status:
		require.Equal(t, 204, got)
	case <-time.After(30 * time.Second): // without the stop it would end after a minute
		t.Fatal("the poll keeps the server up")
	}
	require.NoError(t, <-s.left)
}

func TestRequestsThatTakeTooLongAreAnswered(t *testing.T) {
	s := serve(t, api.Config{ReadTimeout: time.Second}, func(s *api.Server) {
		s.Mount("/hang", answered(func(_ http.ResponseWriter, r *http.Request) error {
			<-r.Context().Done() // like a store that does not answer
			return r.Context().Err()
		}))
	})
	resp, body := s.do(t, "GET", "/hang", "")
	require.Equal(t, 503, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
	require.JSONEq(t, `{"error":"the engine did not answer in time; try again in a moment"}`, body)
}

func TestUnreadAnswersAreCutOff(t *testing.T) {
	for name, stays := range map[string]bool{"of a long poll": true, "of any other request": false} {
		t.Run(name, func(t *testing.T) {
			written := make(chan error, 1)
			s := serve(t, api.Config{ReadTimeout: time.Second}, func(s *api.Server) {
				s.Mount("/large", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if stays {
						_, leave := stream.Stay(w, r)
						defer leave()
					}
					_, err := w.Write(make([]byte, 64<<20)) // more than all buffers between here and there
					written <- err
				}))
			})
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			require.NoError(t, err)
			defer func() { require.NoError(t, conn.Close()) }()
			_, err = io.WriteString(conn, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
			require.NoError(t, err)
			select {
			case err := <-written:
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			case <-time.After(time.Minute):
				t.Fatal("the answer waits for its reader for ever")
			}
		})
	}
}

func TestSlowRequestsAreCutOff(t *testing.T) {
	s := serve(t, api.Config{ReadTimeout: 100 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	_, err = io.WriteString(conn, "POST /api/flows HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err, "the server closes the connection")
	require.NoError(t, conn.Close())
}

func TestErrorsBecomeStatuses(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{flow.Errorf(flow.Invalid, "x"), 400}, {flow.Errorf(flow.NotFound, "x"), 404}, {flow.Errorf(flow.Conflict, "x"), 409},
		{flow.Errorf(flow.Limit, "x"), 422}, {flow.Errorf(flow.Busy, "x"), 429}, {flow.Errorf(flow.Denied, "x"), 403},
		{persistence.ErrNotFound, 404}, {persistence.ErrDuplicate, 409}, {context.DeadlineExceeded, 503},
		{&http.MaxBytesError{}, 413}, {io.ErrUnexpectedEOF, 500},
	} {
		require.Equal(t, tt.want, api.Judge(tt.err).Status, "%v", tt.err)
	}
	require.NotContains(t, api.Judge(io.ErrUnexpectedEOF).Text(), "EOF", "what is inside stays inside")
}
