package worker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/worker"
)

// secret is the secret of the workers in these tests.
const secret = "s3cret"

func pushConfig(e *engine) worker.Config {
	cfg := config(e)
	cfg.Push, cfg.URL, cfg.Secret = true, "http://127.0.0.1:0", secret
	return cfg
}

// post sends a job to a push worker, like an engine that it has registered with.
func post(t testing.TB, ctx context.Context, url, body string, header ...string) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+secret)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

func TestAPushedJobIsAnswered(t *testing.T) {
	e := newEngine(t)
	w := worker.New(pushConfig(e))
	w.Handle("echo", func(_ context.Context, j worker.Job) (any, error) {
		return []any{j.ID, j.Key(), j.Service, j.Input, j.Params}, nil
	})
	w.Handle("a/b c", func(_ context.Context, j worker.Job) (any, error) { return j.Service, nil })
	w.Handle("bad", func(context.Context, worker.Job) (any, error) { return nil, errors.New("bad input") })
	w.Handle("never", func(context.Context, worker.Job) (any, error) { return nil, worker.Fatal(errors.New("never")) })
	w.Handle("panic", func(context.Context, worker.Job) (any, error) { panic("boom") })
	run(t, w)
	defer http.DefaultClient.CloseIdleConnections()
	me := <-e.registered
	require.NotEmpty(t, me.URL)
	require.Equal(t, []string{"a/b c", "bad", "echo", "never", "panic"}, me.Services)
	for name, tt := range map[string]struct {
		path, body string
		header     []string
		status     int
		want       string
	}{
		"a result": {"echo", `{"input":{"n":1},"params":{"p":2}}`,
			[]string{"Idempotency-Key", "k1", "Troupe-Job", "j1"}, 200,
			`{"result":["j1","k1","echo",{"n":1},{"p":2}]}` + "\n"},
		"an error": {"bad", `{}`, nil, 200, `{"result":null,"error":"bad input"}` + "\n"},
		"a fatal error": {"never", `{}`, nil, 200,
			`{"result":null,"error":"never","fatal":true}` + "\n"},
		"a panic": {"panic", `{}`, nil, 200,
			`{"result":null,"error":"handler panicked: boom"}` + "\n"},
		"what is no JSON": {"echo", `{`, nil, 200,
			`{"result":null,"error":"bad request"}` + "\n"},
		"an unknown service":          {"nope", `{}`, nil, 404, "404 page not found\n"},
		"a service's name in escapes": {"a%2Fb%20c", `{}`, nil, 200, `{"result":"a/b c"}` + "\n"},
		"a web page": {"echo", `{}`,
			[]string{"Origin", "https://evil.example"}, 403, "requests of web pages are refused\n"},
		"a page of this computer as well": {"echo", `{}`, []string{"Origin", "http://localhost"},
			403, "requests of web pages are refused\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := post(t, t.Context(), me.URL+"/exec/"+tt.path, tt.body, tt.header...)
			require.Equal(t, tt.status, code)
			require.Equal(t, tt.want, body)
		})
	}
}

func TestAnUnreadAnswerBlocksNoJob(t *testing.T) {
	e := newEngine(t)
	cfg := pushConfig(e)
	cfg.Concurrency = 1
	w := worker.New(cfg)
	ended := make(chan struct{}, 2)
	w.Handle("large", func(context.Context, worker.Job) (any, error) {
		defer func() { ended <- struct{}{} }()
		return strings.Repeat("x", 32<<20), nil // more than fits into the buffers in between
	})
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return "done", nil })
	stop := run(t, w)
	defer stop()
	defer http.DefaultClient.CloseIdleConnections()
	me := soon(t, e.registered)
	u, err := url.Parse(me.URL)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /exec/large HTTP/1.1\r\nHost: w\r\nAuthorization: Bearer "+secret+"\r\nContent-Length: 2\r\n\r\n{}")
	require.NoError(t, err)
	soon(t, ended)
	answered := make(chan string, 1)
	go func() {
		_, body := post(t, t.Context(), me.URL+"/exec/s", `{}`)
		answered <- body
	}()
	require.Equal(t, `{"result":"done"}`+"\n", soon(t, answered))
}

func TestAPushedJobTellsWhereItComesFrom(t *testing.T) {
	e := newEngine(t)
	w := worker.New(pushConfig(e))
	w.Handle("s", func(_ context.Context, j worker.Job) (any, error) {
		return []any{j.Task, j.Flow, j.Step, j.Unit, j.Units, j.Attempt, j.Labels, j.Trace}, nil
	})
	run(t, w)
	defer http.DefaultClient.CloseIdleConnections()
	me := <-e.registered
	_, body := post(t, t.Context(), me.URL+"/exec/s", `{}`, "Troupe-Task", "t", "Troupe-Flow", "f", "Troupe-Step", "a/gr%C3%BC%C3%9Fe 1",
		"traceparent", "00-1-2-01", "Troupe-Unit", "2", "Troupe-Units", "3", "Troupe-Attempt", "4",
		"Troupe-Labels", "gpu,a%2Cb")
	require.Equal(t, `{"result":["t","f","a/grüße 1",2,3,4,["gpu","a,b"],"00-1-2-01"]}`+"\n", body)
	_, body = post(t, t.Context(), me.URL+"/exec/s", `{}`)
	require.Equal(t, `{"result":["","","",0,1,0,null,""]}`+"\n", body, "an engine may not tell")
}

func TestRequestsOfStrangersAreNotCarriedOut(t *testing.T) {
	e := newEngine(t)
	cfg := pushConfig(e)
	cfg.Secret, cfg.Listen = "", "0.0.0.0:0"
	w := worker.New(cfg)
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return "done", nil })
	run(t, w)
	defer http.DefaultClient.CloseIdleConnections()
	me := <-e.registered
	require.Len(t, me.Secret, 26)
	for name, header := range map[string]string{"another secret": "Bearer " + secret, "none": "",
		"an empty one": "Bearer ", "another scheme": "Basic " + me.Secret} {
		code, body := post(t, t.Context(), me.URL+"/exec/s", `{}`, "Authorization", header)
		require.Equal(t, http.StatusUnauthorized, code, name)
		require.NotContains(t, body, me.Secret)
		code, _ = post(t, t.Context(), me.URL+"/exec/unknown", `{}`, "Authorization", header)
		require.Equal(t, http.StatusUnauthorized, code, name)
	}
	code, body := post(t, t.Context(), me.URL+"/exec/s", `{}`, "Authorization", "Bearer "+me.Secret)
	require.Equal(t, 200, code)
	require.Equal(t, `{"result":"done"}`+"\n", body)
}

func TestASecretIsOfOneWorker(t *testing.T) {
	e := newEngine(t)
	for range 2 {
		cfg := pushConfig(e)
		cfg.Secret = ""
		w := worker.New(cfg)
		w.Handle("s", nil)
		run(t, w)
	}
	require.NotEqual(t, (<-e.registered).Secret, (<-e.registered).Secret)
}

func TestATakenPortIsReplaced(t *testing.T) {
	e := newEngine(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	t.Setenv("WORKER_URL", "http://"+taken.Addr().String()+"/")
	cfg := config(e)
	cfg.Push, cfg.Secret = true, secret
	w := worker.New(cfg)
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return 1, nil })
	run(t, w)
	defer http.DefaultClient.CloseIdleConnections()
	me, err := url.Parse((<-e.registered).URL)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", me.Hostname())
	require.NotEqual(t, taken.Addr().String(), me.Host)
	code, _ := post(t, t.Context(), me.String()+"/exec/s", `{}`)
	require.Equal(t, 200, code)

	cfg.Listen = taken.Addr().String()
	w = worker.New(cfg)
	w.Handle("s", nil)
	require.ErrorContains(t, w.Run(t.Context()), "worker: listen")
}

func TestAnAddressToListenOnMayDifferFromTheURL(t *testing.T) {
	e := newEngine(t)
	cfg := pushConfig(e)
	cfg.URL, cfg.Listen = "https://worker.example/base", "127.0.0.1:0"
	w := worker.New(cfg)
	w.Handle("s", nil)
	run(t, w)
	require.Equal(t, "https://worker.example/base", (<-e.registered).URL)
}

func TestJobsInProgressAreTheLoad(t *testing.T) {
	e := newEngine(t)
	cfg := pushConfig(e)
	cfg.Concurrency = 1
	w := worker.New(cfg)
	left := make(chan error, 3)
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		<-ctx.Done()
		left <- ctx.Err()
		return nil, nil
	})
	run(t, w)
	me := <-e.registered
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{}, 3)
	for range 3 {
		go func() {
			post(t, ctx, me.URL+"/exec/s", `{}`)
			gone <- struct{}{}
		}()
	}
	awaitLoad := func(n int) {
		require.Eventually(t, func() bool { return (<-e.beats).Load == n }, time.Minute, time.Millisecond)
	}
	awaitLoad(3) // jobs that wait for a slot count, too
	leave()
	for range 3 {
		<-gone
	}
	require.ErrorIs(t, <-left, context.Canceled) // the context of a job ends with its caller
	awaitLoad(0)
}

func TestPushedJobsMayFinishToo(t *testing.T) {
	e := newEngine(t)
	begun, leave, cancel, ended := runUntilLeave(t, pushConfig(e))
	me := <-e.registered
	answered := make(chan string)
	go func() {
		_, body := post(t, t.Context(), me.URL+"/exec/s", `{}`)
		answered <- body
	}()
	<-begun
	cancel()
	require.Eventually(t, func() bool { // no new connections are accepted
		c, err := net.Dial("tcp", strings.TrimPrefix(me.URL, "http://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond)
	close(leave)
	require.Equal(t, `{"result":"done"}`+"\n", <-answered)
	require.NoError(t, <-ended)
	http.DefaultClient.CloseIdleConnections()
}

func TestPushAndPullShareTheirHandlersAndSlots(t *testing.T) {
	e := newEngine(t)
	cfg := pushConfig(e)
	cfg.Pull = true
	w := worker.New(cfg)
	w.Handle("s", func(_ context.Context, j worker.Job) (any, error) { return j.Input, nil })
	run(t, w)
	defer http.DefaultClient.CloseIdleConnections()
	me := <-e.registered
	require.NotEmpty(t, me.URL)
	_, body := post(t, t.Context(), me.URL+"/exec/s", `{"input":7}`)
	require.Equal(t, `{"result":7}`+"\n", body)
	e.queue <- job("1", "s")
	require.Equal(t, `{"n":1}`, string((<-e.completed).Output))
}

func BenchmarkPush(b *testing.B) {
	e := newEngine(b)
	w := worker.New(pushConfig(e))
	w.Handle("s", func(_ context.Context, j worker.Job) (any, error) { return j.Input, nil })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	me := <-e.registered
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	body := `{"input":"` + strings.Repeat("x", 200) + `","params":{}}`
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req, _ := http.NewRequest(http.MethodPost, me.URL+"/exec/s", strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer "+secret)
			resp, err := client.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	client.CloseIdleConnections()
	cancel()
	<-ended
}

func TestAPushWorkerDeregistersBeforeItClosesItsPort(t *testing.T) {
	e := newEngine(t)
	w := worker.New(pushConfig(e))
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return 1, nil })
	registered := make(chan string, 1)
	answered := make(chan int, 1)
	e.first("forget", func(http.ResponseWriter) {
		// sent by the engine just before
		status, _ := post(t, context.Background(), <-registered+"/exec/s", `{}`)
		http.DefaultClient.CloseIdleConnections()
		answered <- status
	})
	stop := run(t, w)
	registered <- (<-e.registered).URL
	stop()
	require.Equal(t, 200, <-answered)
}
