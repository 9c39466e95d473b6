package attach_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
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
