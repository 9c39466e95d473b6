package attach_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/internal/testing/certtest"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/worker"
)

const one = `{"start":"a","nodes":{"a":{"exec_type":"remote","service":"double","prep":{"input_key":"$params.n"},"post":{"output_key":"out"}}}}`

func double(_ context.Context, job worker.Job) (any, error) {
	var n float64
	if err := json.Unmarshal(job.Input, &n); err != nil {
		return nil, worker.Fatal(err)
	}
	return 2 * n, nil
}

func TestAnAttachedWorkerCarriesOutJobs(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, troupe.Config{Store: store(t)})
			stop := s.attach(worker.Config{ID: "w"}, map[string]worker.Handler{"double": double})
			s.listed(1)
			require.Equal(t, map[string]bool{"w": true}, s.workers())
			s.publish("one", one)
			s.publish("plain",
				`{"start":"a","nodes":{"a":{"service":"double","prep":{"input_key":"$params.n"},"post":{"output_key":"out"}}}}`)
			for _, flow := range []string{"one", "plain"} {
				r := s.end(s.start(flow, map[string]any{"n": 21}))
				require.EqualValues(t, "completed", r.Status, r.Error)
				require.JSONEq(t, `{"out":42}`, string(r.Value))
			}
			stop()
			s.listed(0)
			r := s.end(s.start("one", map[string]any{"n": 21}))
			require.Contains(t, r.Error, "no worker")
		})
	}
}

func TestResultsAndErrorsOfHandlersReachTheTask(t *testing.T) {
	s := open(t, troupe.Config{})
	got := make(chan worker.Job, 1)
	s.attach(worker.Config{}, map[string]worker.Handler{
		"tell":  func(_ context.Context, j worker.Job) (any, error) { j.Log = nil; got <- j; return "told", nil },
		"fail":  func(context.Context, worker.Job) (any, error) { return nil, errors.New("no luck") },
		"panic": func(context.Context, worker.Job) (any, error) { panic("boom") },
		"large": func(context.Context, worker.Job) (any, error) { return make([]byte, 9<<20), nil },
	})
	s.listed(1)
	for service, want := range map[string]string{"tell": "", "fail": "no luck", "panic": "boom",
		"large": "the result was rejected", "other": "no worker"} {
		s.publish(service, fmt.Sprintf(
			`{"start":"a","nodes":{"a":{"exec_type":"remote","service":%q,"params":{"p":1},"prep":{"input_key":"$params.n"}}}}`,
			service))
		r := s.end(s.start(service, map[string]any{"n": []int{1}}))
		if want == "" {
			require.EqualValues(t, "completed", r.Status, r.Error)
			continue
		}
		require.Contains(t, r.Error, want)
	}
	j := <-got
	require.JSONEq(t, `[1]`, string(j.Input))
	require.JSONEq(t, `{"n":[1],"p":1}`, string(j.Params))
	require.Equal(t, []any{"tell", "a", 1, 1, 0, "tell"}, []any{j.Flow, j.Step, j.Attempt, j.Units, j.Unit, j.Service})
}

const many = `{"start":"a","nodes":{"a":{"kind":"foreach","exec_type":"remote","service":"double","parallel_mode":"concurrent","prep":{"input_key":"$params.list"},"post":{"output_key":"out"}}}}`

func TestAWorkerNeverHasMoreJobsThanCredits(t *testing.T) {
	s := open(t, troupe.Config{})
	var now, most [2]atomic.Int32
	for i := range 2 {
		s.attach(worker.Config{ID: fmt.Sprint(i), Concurrency: 3 + i},
			map[string]worker.Handler{"double": func(ctx context.Context, job worker.Job) (any, error) {
				n := now[i].Add(1)
				defer now[i].Add(-1)
				for m := most[i].Load(); n > m && !most[i].CompareAndSwap(m, n); m = most[i].Load() {
				}
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
				}
				return double(ctx, job)
			}})
	}
	s.listed(2)
	s.publish("many", many)
	r := s.end(s.start("many", map[string]any{"list": make([]int, 200)}))
	require.EqualValues(t, "completed", r.Status, r.Error)
	for i := range 2 {
		require.Equal(t, int32(3+i), most[i].Load(), "all credits of a worker are used, and no more")
	}
}

func TestASlowWorkerDelaysNoOtherWorker(t *testing.T) {
	s := open(t, troupe.Config{})
	leave := make(chan struct{})
	s.attach(worker.Config{ID: "slow", Concurrency: 1},
		map[string]worker.Handler{"slow": func(context.Context, worker.Job) (any,
			error) {
			<-leave
			return nil, nil
		}})
	s.attach(worker.Config{ID: "quick"}, map[string]worker.Handler{"double": double})
	s.listed(2)
	s.publish("slow",
		`{"start":"a","nodes":{"a":{"kind":"foreach","exec_type":"remote","service":"slow","parallel_mode":"concurrent","prep":{"input_key":"$params.list"}}}}`)
	s.publish("one", one)
	// more than the member has places for its own jobs
	held := s.start("slow", map[string]any{"list": make([]int, 1000)})
	for range 20 {
		require.EqualValues(t, "completed", s.end(s.start("one", map[string]any{"n": 1})).Status)
	}
	close(leave)
	require.EqualValues(t, "completed", s.end(held).Status)
}

func TestACancellationReachesTheHandler(t *testing.T) {
	s := open(t, troupe.Config{})
	began, ended := make(chan struct{}), make(chan error, 1)
	s.attach(worker.Config{Concurrency: 1}, map[string]worker.Handler{
		"double": func(ctx context.Context, _ worker.Job) (any, error) {
			close(began)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, ctx.Err()
		},
		"next": double,
	})
	s.listed(1)
	s.publish("one", one)
	s.publish("next",
		`{"start":"a","nodes":{"a":{"exec_type":"remote","service":"next","prep":{"input_key":"$params.n"},"post":{"output_key":"out"}}}}`)
	task := s.start("one", map[string]any{"n": 1})
	<-began
	next := s.start("next", map[string]any{"n": 3}) // which waits for the only credit
	require.NoError(t, s.engine.Cancel(t.Context(), task))
	require.ErrorContains(t, <-ended, "nobody waits for this job")
	require.JSONEq(t, `{"out":6}`, string(s.end(next).Value))
	require.EqualValues(t, "canceled", s.end(task).Status)
}

func TestATimeoutReachesTheHandler(t *testing.T) {
	s := open(t, troupe.Config{})
	ended := make(chan error, 1)
	s.attach(worker.Config{}, map[string]worker.Handler{"double": func(ctx context.Context, _ worker.Job) (any, error) {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}})
	s.listed(1)
	s.publish("short", `{"start":"a","nodes":{"a":{"exec_type":"remote","service":"double","timeout_ms":50}}}`)
	require.Contains(t, s.end(s.start("short", nil)).Error, "timeout")
	require.Error(t, <-ended)
}

func TestAttachingNeedsAToken(t *testing.T) {
	s := open(t, troupe.Config{Tokens: []string{"secret"}})
	began := make(chan struct{}, 10)
	handlers := map[string]worker.Handler{"double": func(ctx context.Context, job worker.Job) (any, error) {
		began <- struct{}{}
		return double(ctx, job)
	}}
	s.publish("one", one)
	resp, err := http.Post(s.url+"/troupe.attach.v1.Workers/Attach", "application/grpc", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.Eventually(t, func() bool { // the first jobs after a start may be for earlier workers
		return s.end(s.start("one", map[string]any{"n": 1})).Error != ""
	}, patience, time.Millisecond)
	require.Empty(t, began)
	s.attach(worker.Config{Token: "secret"}, handlers)
	require.Eventually(t, func() bool {
		return s.end(s.start("one",
			map[string]any{"n": 1})).Status == "completed"
	}, patience, 10*time.Millisecond)
}

func TestJobsGoToWorkersWithTheirLabels(t *testing.T) {
	s := open(t, troupe.Config{})
	by := func(name string) map[string]worker.Handler {
		return map[string]worker.Handler{"who": func(context.Context, worker.Job) (any, error) { return name, nil }}
	}
	s.attach(worker.Config{ID: "plain"}, by("plain"))
	s.attach(worker.Config{ID: "gpu", Labels: []string{"gpu", "eu"}}, by("gpu"))
	s.listed(2)
	s.publish("gpu", `{"start":"a","nodes":{"a":{"exec_type":"remote","service":"who","labels":["gpu"],"post":{"output_key":"out"}}}}`)
	s.publish("us", `{"start":"a","nodes":{"a":{"exec_type":"remote","service":"who","labels":["us"]}}}`)
	for range 10 {
		require.JSONEq(t, `{"out":"gpu"}`, string(s.end(s.start("gpu", nil)).Value))
	}
	require.Contains(t, s.end(s.start("us", nil)).Error, "no worker for service who with the labels us")
}

func TestOutputOfAJobIsStored(t *testing.T) {
	s := open(t, troupe.Config{})
	ids := make(chan string, 1)
	s.attach(worker.Config{}, map[string]worker.Handler{"double": func(ctx context.Context, job worker.Job) (any, error) {
		fmt.Fprintln(job.Log, "first line")
		fmt.Fprintln(job.Log, "second line")
		ids <- job.ID
		return double(ctx, job)
	}})
	s.listed(1)
	s.publish("one", one)
	require.EqualValues(t, "completed", s.end(s.start("one", map[string]any{"n": 1})).Status)
	resp, err := http.Get(s.url + "/v1/jobs/" + <-ids + "/log")
	require.NoError(t, err)
	defer resp.Body.Close()
	var log struct{ Content string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&log))
	require.Equal(t, "first line\nsecond line\n", log.Content)
}

func TestOutputOfARunningJobIsFollowedByStream(t *testing.T) {
	s := open(t, troupe.Config{})
	leave := make(chan struct{})
	s.attach(worker.Config{}, map[string]worker.Handler{"double": func(ctx context.Context, job worker.Job) (any, error) {
		fmt.Fprintln(worker.OpenOutput(job.Log, "stdout"), "one")
		fmt.Fprintln(worker.OpenOutput(job.Log, "stderr"), "two")
		fmt.Fprint(job.Log, "half")
		<-leave
		return double(ctx, job)
	}})
	s.listed(1)
	s.publish("one", one)
	c, err := client.New(s.url, client.Options{})
	require.NoError(t, err)
	var told []string
	for l, err := range c.FollowLogs(t.Context(), s.start("one", map[string]any{"n": 1}), client.LogQuery{}) {
		require.NoError(t, err)
		if told = append(told, l.Stream+" "+l.Text); len(told) == 2 {
			close(leave)
		}
	}
	require.Equal(t, []string{"stdout one", "stderr two", "log half"}, told)
}

func TestAWorkerAttachesOverTLS(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	s := open(t, troupe.Config{TLSCert: own.Cert, TLSKey: own.Key})
	s.publish("one", one)
	handlers := map[string]worker.Handler{"double": double}
	address := s.url[len("http://"):]
	s.attach(worker.Config{Server: "http://" + address}, handlers) // the member does not speak TLS
	// the worker does not trust the member
	s.attach(worker.Config{Server: "https://" + address}, handlers)
	s.attach(worker.Config{Server: "https://" + address, Trust: client.Trust{CA: ca.File}}, handlers)
	require.Eventually(t, func() bool {
		return s.end(s.start("one",
			map[string]any{"n": 1})).Status == "completed"
	}, patience, 10*time.Millisecond)
}

func TestAJobThatEndsItsWorkerEachTimeIsGivenUp(t *testing.T) {
	s := open(t, troupe.Config{ResumeGrace: -1})
	var began atomic.Int32
	cables := make([]*cable, 6)
	for i := range cables {
		c := newCable(t, s.url[len("http://"):])
		cables[i] = c
		s.attach(worker.Config{Server: c.url(), Grace: -1},
			map[string]worker.Handler{"double": func(ctx context.Context, _ worker.Job) (any, error) {
				began.Add(1)
				c.sever() // as if its process had died
				<-ctx.Done()
				return nil, ctx.Err()
			}})
	}
	s.listed(6)
	s.publish("one", one)
	require.Contains(t, s.end(s.start("one", map[string]any{"n": 1})).Error, "given up after 5 deliveries")
	require.EqualValues(t, 5, began.Load())
	for _, c := range cables {
		c.mend()
	}
}

func TestAnAttachedWorkerThatIsDeniedEnds(t *testing.T) {
	s := open(t, troupe.Config{Tokens: []string{"open sesame"}})
	for token, want := range map[string]string{"": "it wants a token, and there is none", "open says me": "the token is wrong"} {
		w := worker.New(worker.Config{Server: s.url, Token: token, Attach: true, Logger: slog.New(slog.DiscardHandler)})
		w.Handle("double", double)
		err := w.Run(t.Context())
		require.ErrorIs(t, err, worker.ErrDenied)
		require.ErrorContains(t, err, want)
	}
}
