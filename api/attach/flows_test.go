package attach_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/worker"
)

type order struct {
	Customer string `json:"customer"`
}

// attachFlow runs an attached worker with a function until the test ends or the function is called.
func attachFlow[In, Out any](s *stage, cfg worker.Config, name string, fn durable.Func[In, Out]) (stop func()) {
	s.Helper()
	cfg.Attach = true
	if cfg.Server == "" {
		cfg.Server = s.url
	}
	cfg.Logger = slog.New(slog.NewTextHandler(testLog{s.T}, nil))
	w := worker.New(cfg)
	worker.HandleFlow(w, name, fn)
	return s.run(w)
}

// ledger counts the effects of steps.
type ledger struct {
	mu      sync.Mutex
	effects []string
}

func (l *ledger) add(effect string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects = append(l.effects, effect)
}

func (l *ledger) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.effects)
}

// step carries out a step that adds its name to the ledger.
func (l *ledger) step(f *durable.Flow, name string) (string, error) {
	return durable.Do(f, name, func(context.Context) (string, error) { l.add(name); return name + " done", nil })
}

// bothStores runs a test with both databases.
func bothStores(t *testing.T, test func(t *testing.T, cfg troupe.Config)) {
	t.Run("sqlite", func(t *testing.T) { test(t, troupe.Config{}) })
	t.Run("postgres", func(t *testing.T) { test(t, troupe.Config{Store: pgtest.DSN(t)}) })
}

func TestFunctionInAWorkerRunsItsSteps(t *testing.T) {
	bothStores(t, func(t *testing.T, cfg troupe.Config) {
		s, l := open(t, cfg), &ledger{}
		attachFlow(s, worker.Config{ID: "w"}, "checkout", func(f *durable.Flow, o order) (string, error) {
			for _, name := range []string{"reserve", "charge"} {
				if _, err := l.step(f, name); err != nil {
					return "", err
				}
			}
			return o.Customer, nil
		})
		s.listed(1)
		r := s.end(s.start("checkout", order{"ann"}))
		require.EqualValues(t, "completed", r.Status, r.Error)
		require.JSONEq(t, `"ann"`, string(r.Value))
		require.Equal(t, []string{"reserve", "charge"}, l.list())
		_, err := s.engine.Start(t.Context(), "checkout", map[string]any{"colour": 3})
		require.ErrorContains(t, err, "customer", "the worker has published its inputs")
	})
}

func TestFailedFunctionInAWorkerIsUndone(t *testing.T) {
	s, l := open(t, troupe.Config{}), &ledger{}
	attachFlow(s, worker.Config{}, "trip", func(f *durable.Flow, _ order) (string, error) {
		if _, err := l.step(f, "book"); err != nil {
			return "", err
		}
		f.Undo("cancel", func(context.Context) error { l.add("cancel"); return nil })
		return "", f.Do("pay", func(context.Context) error {
			return worker.Detailed(errors.New("no money"), map[string]int{"owed": 3})
		})
	})
	s.listed(1)
	r := s.end(s.start("trip", order{"ann"}))
	require.EqualValues(t, "failed", r.Status)
	require.Contains(t, r.Error, "step pay: no money")
	require.Equal(t, []string{"book", "cancel"}, l.list())
}

func TestFunctionInAWorkerWaits(t *testing.T) {
	bothStores(t, func(t *testing.T, cfg troupe.Config) {
		for name, warm := range map[string]time.Duration{"warm": time.Minute, "called again": -1} {
			t.Run(name, func(t *testing.T) {
				s, l := open(t, cfg), &ledger{}
				attachFlow(s, worker.Config{KeepWarm: warm, Concurrency: 1}, "checkout", func(f *durable.Flow, _ order) (int, error) {
					l.add("call")
					f.Sleep("cool", time.Millisecond)
					paid, err := durable.Signal[int](f, "paid", durable.Within(time.Hour))
					if err != nil {
						return 0, err
					}
					ok, err := durable.Approve(f, "ship it", durable.Show("paid", paid))
					if ok {
						_, err = l.step(f, "ship")
					}
					return paid, err
				})
				s.listed(1)
				first, second := s.start("checkout", order{"ann"}), s.start("checkout", order{"bob"})
				for _, task := range []string{second, first} { // in the only slot of the worker
					s.waits(task, "signal")
					require.NoError(t, s.engine.Signal(t.Context(), task, "paid", 7))
					s.waits(task, "approval")
					require.NoError(t, s.engine.Signal(t.Context(), task, "ship it", "approved"))
					r := s.end(task)
					require.EqualValues(t, "completed", r.Status, r.Error)
					require.JSONEq(t, `7`, string(r.Value))
				}
				calls := 0
				for _, effect := range l.list() {
					if effect == "call" {
						calls++
					}
				}
				if name == "warm" {
					require.Equal(t, 2, calls)
				} else {
					require.GreaterOrEqual(t, calls, 6)
				}
				require.Contains(t, l.list(), "ship")
			})
		}
	})
}

// chain returns a function of n steps.
func (l *ledger) chain(n int) durable.Func[order, int] {
	return func(f *durable.Flow, _ order) (int, error) {
		for i := range n {
			if _, err := l.step(f, fmt.Sprint("step", i)); err != nil {
				return 0, err
			}
		}
		return n, nil
	}
}

const checkout = `{"name":"checkout","mode":"code","code":"checkout"}`

func (s *stage) ends(task, value string) {
	s.Helper()
	r := s.end(task)
	require.EqualValues(s, "completed", r.Status, r.Error)
	require.JSONEq(s, value, string(r.Value))
}

func TestHeldFunctionGoesOnWhenAWorkerWithItAttaches(t *testing.T) {
	s, l := open(t, troupe.Config{}), &ledger{}
	s.publish("checkout", checkout)
	tasks := []string{s.start("checkout", nil), s.start("checkout", nil), s.start("checkout", nil)}
	for _, task := range tasks {
		require.Contains(t, s.waits(task, "code"), "no program and no attached worker has the flow checkout")
	}
	require.NoError(t, s.engine.Pause(t.Context(), tasks[1]))
	require.NoError(t, s.engine.Cancel(t.Context(), tasks[2]))
	require.EqualValues(t, "canceled", s.end(tasks[2]).Status)
	stop := attachFlow(s, worker.Config{}, "checkout", l.chain(2))
	s.ends(tasks[0], "2")
	require.NoError(t, s.engine.Resume(t.Context(), tasks[1]))
	s.ends(tasks[1], "2")
	stop()
	s.listed(0)
	later := s.start("checkout", order{"ann"})
	s.waits(later, "code")
	attachFlow(s, worker.Config{}, "checkout", l.chain(2))
	s.ends(later, "2")
}

func TestHeldFunctionGoesOnInAWorkerOfAnotherMember(t *testing.T) {
	dsn, l := pgtest.DSN(t), &ledger{}
	a, b := open(t, troupe.Config{Store: dsn, Name: "a"}), open(t, troupe.Config{Store: dsn, Name: "b"})
	a.publish("checkout", checkout)
	var tasks []string
	for range 10 { // of both members
		tasks = append(tasks, a.start("checkout", nil))
	}
	for _, task := range tasks {
		a.waits(task, "code")
	}
	release := make(chan struct{})
	attachFlow(b, worker.Config{}, "checkout", func(f *durable.Flow, o order) (int, error) {
		if n, err := l.chain(2)(f, o); err != nil {
			return n, err
		}
		aside := durable.Go(f, "aside", func(f *durable.Flow) (int, error) { return durable.Signal[int](f, "paid") })
		if err := f.Do("work", func(context.Context) error { <-release; return nil }); err != nil {
			return 0, err
		}
		return aside.Wait(f)
	})
	for _, task := range tasks {
		a.waitsFor(task, "signal")
		require.NoError(t, a.engine.Signal(t.Context(), task, "paid", 7))
	}
	close(release)
	for _, task := range tasks {
		a.ends(task, "7")
	}
	require.Len(t, l.list(), 2*len(tasks))
}

func TestFunctionThatDoesNotFitGoesOnInAWorkerWithFittingCode(t *testing.T) {
	s, l := open(t, troupe.Config{}), &ledger{}
	paid := func(name string) durable.Func[order, string] {
		return func(f *durable.Flow, _ order) (string, error) {
			if _, err := l.step(f, name); err != nil {
				return "", err
			}
			return durable.Signal[string](f, "paid")
		}
	}
	stop := attachFlow(s, worker.Config{}, "checkout", paid("reserve"))
	s.listed(1)
	task := s.start("checkout", order{"ann"})
	s.waits(task, "signal")
	stop()
	attachFlow(s, worker.Config{}, "checkout", paid("book"))
	s.listed(1)
	require.NoError(t, s.engine.Signal(t.Context(), task, "paid", "yes"))
	require.Equal(t, "nondeterministic: at step reserve the history has do reserve, the code asked for do book", s.waits(task, "code"))
	// it gets the job, because it has more free credits than the other one
	attachFlow(s, worker.Config{Concurrency: 100}, "checkout", paid("reserve"))
	s.ends(task, `"yes"`)
	require.Equal(t, []string{"reserve"}, l.list())
}

func TestCanceledFunctionInAWorkerIsUndone(t *testing.T) {
	s, l := open(t, troupe.Config{}), &ledger{}
	ended := make(chan struct{})
	attachFlow(s, worker.Config{Concurrency: 1}, "trip", func(f *durable.Flow, _ order) (string, error) {
		for _, name := range []string{"hotel", "flight"} {
			if _, err := l.step(f, name); err != nil {
				return "", err
			}
			f.Undo("cancel "+name, func(context.Context) error { l.add("cancel " + name); return nil })
		}
		return "", f.Do("wait", func(ctx context.Context) error { l.add("wait"); <-ctx.Done(); close(ended); return ctx.Err() })
	})
	s.listed(1)
	task := s.start("trip", order{"ann"})
	require.Eventually(t, func() bool { return slices.Contains(l.list(), "wait") }, patience, time.Millisecond)
	require.NoError(t, s.engine.Cancel(t.Context(), task))
	<-ended
	require.EqualValues(t, "canceled", s.end(task).Status)
	require.Equal(t, []string{"hotel", "flight", "wait", "cancel flight", "cancel hotel"}, l.list())
}

func TestFunctionGoesOnAfterCutsWithoutASecondRun(t *testing.T) {
	s, l := open(t, troupe.Config{ResumeGrace: time.Minute}), &ledger{}
	c := newCable(t, s.url[len("http://"):])
	attachFlow(s, worker.Config{Server: c.url()}, "count", func(f *durable.Flow, _ order) (int, error) {
		items, sum := make([]int, 300), 0
		done, err := durable.Each(f, "each", items, 4, func(f *durable.Flow, _ int) (int, error) {
			if _, err := l.step(f, "one"); err != nil {
				return 0, err
			}
			f.Sleep("nap", time.Millisecond)
			_, err := l.step(f, "two")
			return 1, err
		})
		for _, n := range done {
			sum += n
		}
		return sum, err
	})
	s.listed(1)
	task := s.start("count", order{"ann"})
	for cut := range 10 {
		require.Eventually(t, func() bool { return len(l.list()) >= 30*(cut+1) }, patience, time.Millisecond)
		c.sever()
		c.mend()
	}
	s.ends(task, "300")
	require.Len(t, l.list(), 600)
}

func TestEndOfAWaitDuringACutReachesTheFunction(t *testing.T) {
	s := open(t, troupe.Config{ResumeGrace: time.Minute})
	c := newCable(t, s.url[len("http://"):])
	got, release := make(chan int, 1), make(chan struct{})
	attachFlow(s, worker.Config{Server: c.url()}, "checkout", func(f *durable.Flow, _ order) (int, error) {
		aside := durable.Go(f, "aside", func(f *durable.Flow) (int, error) {
			paid, err := durable.Signal[int](f, "paid")
			got <- paid
			return paid, err
		})
		if err := f.Do("work", func(context.Context) error { <-release; return nil }); err != nil {
			return 0, err
		}
		return aside.Wait(f)
	})
	s.listed(1)
	task := s.start("checkout", order{"ann"})
	s.waitsFor(task, "signal")
	c.sever()
	require.NoError(t, s.engine.Signal(t.Context(), task, "paid", 7))
	c.mend()
	require.Equal(t, 7, <-got, "during the step")
	close(release)
	s.ends(task, "7")
}

func TestLongHistoryReachesTheWorkerInPages(t *testing.T) {
	s, l := open(t, troupe.Config{}), &ledger{}
	attachFlow(s, worker.Config{KeepWarm: -1}, "large", func(f *durable.Flow, _ order) (size int, err error) {
		for i := range 40 {
			text, err := durable.Do(f, "make", func(context.Context) (string, error) {
				l.add("make")
				return strings.Repeat("x", 100_000), nil
			})
			if err != nil {
				return 0, err
			}
			size += len(text)
			if i%20 == 19 {
				f.Sleep("nap", time.Millisecond)
			}
		}
		_, err = durable.Do(f, "huge", func(context.Context) (string, error) { return strings.Repeat("x", 9<<20), nil })
		var failed *durable.Error
		if !errors.As(err, &failed) || !strings.Contains(failed.Text, "more than the engine takes") {
			return 0, fmt.Errorf("no refusal: %w", err)
		}
		return size, nil
	})
	s.listed(1)
	s.ends(s.start("large", order{"ann"}), "4000000")
	require.Len(t, l.list(), 40)
}

func TestLeavingWorkerReturnsItsFunctionBehindAStep(t *testing.T) {
	s, l := open(t, troupe.Config{}), &ledger{}
	reached, release := make(chan struct{}), make(chan struct{})
	fn := func(f *durable.Flow, o order) (int, error) {
		if err := f.Do("first", func(context.Context) error { l.add("first"); close(reached); <-release; return nil }); err != nil {
			return 0, err
		}
		return l.chain(2)(f, o)
	}
	stop := attachFlow(s, worker.Config{ID: "first", Grace: time.Hour}, "checkout", fn)
	s.listed(1)
	task := s.start("checkout", order{"ann"})
	<-reached
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	attachFlow(s, worker.Config{ID: "second"}, "checkout", fn)
	require.Eventually(t, func() bool { return s.knownWorkers()["second"] != "" }, patience, time.Millisecond)
	close(release)
	<-stopped
	s.ends(task, "2")
	require.Equal(t, []string{"first", "step0", "step1"}, l.list())
}

func TestPausedFunctionInAWorkerStopsAtItsNextStep(t *testing.T) {
	s, l := open(t, troupe.Config{}), &ledger{}
	reached, release := make(chan struct{}), make(chan struct{})
	attachFlow(s, worker.Config{}, "checkout", func(f *durable.Flow, o order) (int, error) {
		if err := f.Do("first", func(context.Context) error { close(reached); <-release; return nil }); err != nil {
			return 0, err
		}
		return l.chain(1)(f, o)
	})
	s.listed(1)
	task := s.start("checkout", order{"ann"})
	<-reached
	require.NoError(t, s.engine.Pause(t.Context(), task))
	close(release)
	require.Eventually(t, func() bool {
		w, err := s.engine.Waiting(t.Context(), task)
		return err == nil && slices.ContainsFunc(w.Waits, func(w wire.WaitReason) bool { return w.Text == "the task is paused" })
	}, patience, time.Millisecond)
	require.Empty(t, l.list())
	require.NoError(t, s.engine.Resume(t.Context(), task))
	s.ends(task, "1")
}

func TestFunctionInAWorkerBeginsAnew(t *testing.T) {
	s, l := open(t, troupe.Config{}), &ledger{}
	type round struct {
		N int `json:"n"`
	}
	attachFlow(s, worker.Config{}, "rounds", func(f *durable.Flow, r round) (int, error) {
		if _, err := l.step(f, "bill"); err != nil || r.N == 3 {
			return r.N, err
		}
		f.Sleep("month", time.Millisecond)
		return 0, f.Restart(round{r.N + 1})
	})
	s.listed(1)
	s.ends(s.start("rounds", round{}), "3")
	require.Len(t, l.list(), 4)
}

func TestCanceledFunctionIsUndoneWhenItsWorkerIsBack(t *testing.T) {
	s, l := open(t, troupe.Config{}), &ledger{}
	trip := func(f *durable.Flow, _ order) (string, error) {
		if _, err := l.step(f, "hotel"); err != nil {
			return "", err
		}
		f.Undo("cancel hotel", func(context.Context) error { l.add("cancel hotel"); return nil })
		return durable.Signal[string](f, "paid")
	}
	stop := attachFlow(s, worker.Config{}, "trip", trip)
	s.listed(1)
	canceled, held := s.start("trip", order{"ann"}), s.start("trip", order{"bob"})
	s.waits(canceled, "signal")
	s.waits(held, "signal")
	stop()
	s.listed(0)
	require.NoError(t, s.engine.Cancel(t.Context(), canceled))
	require.NoError(t, s.engine.Signal(t.Context(), held, "paid", "yes"))
	s.waits(held, "code")
	require.NoError(t, s.engine.Cancel(t.Context(), held))
	attachFlow(s, worker.Config{}, "trip", trip)
	require.EqualValues(t, "canceled", s.end(canceled).Status)
	require.EqualValues(t, "canceled", s.end(held).Status)
	require.Equal(t, []string{"hotel", "hotel", "cancel hotel", "cancel hotel"}, l.list())
}

func TestFunctionInAWorkerCallsAServiceAndRunsAFlow(t *testing.T) {
	dsn := pgtest.DSN(t)
	a, b := open(t, troupe.Config{Store: dsn, Name: "a"}), open(t, troupe.Config{Store: dsn, Name: "b"})
	attachFlow(a, worker.Config{KeepWarm: -1}, "sum", func(f *durable.Flow, _ order) (sum int, err error) {
		for n := range 3 {
			twice, err := durable.Call[int](f, "double", n)
			if err != nil {
				return 0, err
			}
			sum += twice
		}
		more, err := durable.Run[int](f, "more", order{"bob"})
		return sum + more, err
	})
	attachFlow(b, worker.Config{}, "more", func(f *durable.Flow, _ order) (int, error) {
		return durable.Do(f, "add", func(context.Context) (int, error) { return 1, nil })
	})
	b.attach(worker.Config{}, map[string]worker.Handler{"double": double})
	a.listed(3)
	b.listed(3)
	var tasks []string
	for range 10 { // of both members
		tasks = append(tasks, a.start("sum", order{"ann"}))
	}
	for _, task := range tasks {
		b.ends(task, "7")
	}
}

func TestFunctionInAWorkerWritesToAStream(t *testing.T) {
	bothStores(t, func(t *testing.T, cfg troupe.Config) {
		s, l := open(t, cfg), &ledger{}
		attachFlow(s, worker.Config{ID: "w"}, "tell", func(f *durable.Flow, _ order) (string, error) {
			for _, name := range []string{"one", "two"} {
				if err := f.Stream("answer").Write(name); err != nil {
					return "", err
				}
				if _, err := l.step(f, name); err != nil {
					return "", err
				}
			}
			return "told", nil
		})
		s.listed(1)
		id := s.start("tell", order{"ann"})
		r := s.end(id)
		require.EqualValues(t, "completed", r.Status, r.Error)
		var values []string
		for v, err := range s.engine.FollowStream(t.Context(), id, "answer", 0) {
			require.NoError(t, err)
			values = append(values, string(v.Value))
		}
		require.Equal(t, []string{`"one"`, `"two"`}, values)
	})
}
