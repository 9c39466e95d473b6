package v1

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	statsAge    = 5 * time.Second // how old an answer may be
	statsTasks  = 200             // whose journals are read
	statsTime   = time.Second     // for reading them
	statsKept   = 200             // answers
	statsAtOnce = 2               // answers are made
)

var windows = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

type statsInput struct {
	FlowPath
	Window  string `query:"window" enum:"1h,24h,7d" default:"24h" doc:"tasks that ended in this time"`
	Version int    `query:"version" minimum:"0" doc:"number of their version; 0 = any"`
}

// keptStats are answers by what was asked.
type keptStats struct {
	mu    sync.Mutex
	all   map[statsInput]*fresh[wire.FlowStats]
	turns *semaphore.Weighted
}

func newKeptStats() *keptStats {
	return &keptStats{all: map[statsInput]*fresh[wire.FlowStats]{}, turns: semaphore.NewWeighted(statsAtOnce)}
}

// of is where the answer is kept. When there are too many all are forgotten: they are of seconds ago.
func (k *keptStats) of(in statsInput) *fresh[wire.FlowStats] {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all[in] == nil {
		if len(k.all) >= statsKept {
			clear(k.all)
		}
		k.all[in] = newFresh[wire.FlowStats]()
	}
	return k.all[in]
}

func (s *service) getStats(ctx context.Context, in *statsInput) (*body[wire.FlowStats], error) {
	f, err := s.flowBy(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, err
	}
	in.Flow = nameOf(f)
	return only(s.stats.of(*in).get(ctx, s.Engine.Now(), statsAge, func(ctx context.Context) (*wire.FlowStats, error) {
		return s.measure(ctx, in)
	}))
}

// measure counts the tasks that ended and reads the newest of them.
func (s *service) measure(ctx context.Context, in *statsInput) (*wire.FlowStats, error) {
	if err := s.stats.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.stats.turns.Release(1)
	since := s.Engine.Now().Add(-windows[in.Window])
	answer := &wire.FlowStats{Flow: in.Flow, Version: in.Version, Window: in.Window, Since: wire.Time{Time: since}}
	for _, state := range []flow.TaskStatus{flow.TaskCompleted, flow.TaskFailed, flow.TaskCanceled} {
		n, err := s.listed(ctx, TaskPick{Flow: []string{in.Flow}, Version: in.Version, State: []string{string(state)}, EndedFrom: since})
		if err != nil {
			return nil, err
		}
		answer.States = append(answer.States, wire.StateTasks{State: string(state), ListedTasks: n})
		answer.Of += n.Count
	}
	f, err := s.filterOf(ctx, &TaskPick{Flow: []string{in.Flow}, Version: in.Version, EndedFrom: since})
	if err != nil {
		return nil, err
	}
	f.ByEnd, f.Limit = true, statsTasks
	rows, err := s.Store.ListTasks(ctx, f)
	if err != nil {
		return nil, err
	}
	sample, err := s.sample(ctx, rows)
	if err != nil {
		return nil, err
	}
	toStats(answer, sample)
	return answer, nil
}

// sample reads the journals of tasks for as long as there is time. One that cannot be read, or goes on again, is not in it.
func (s *service) sample(ctx context.Context, rows []persistence.TaskRow) (*stats.Stats, error) {
	sample := stats.New()
	timed, cancel := context.WithTimeout(ctx, statsTime)
	defer cancel()
	for i := range rows {
		task := stats.NewTask(rows[i].ID)
		switch err := s.tell(timed, rows[i].ID, task.Event); {
		case err == nil:
			sample.Add(task)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case timed.Err() != nil:
			return sample, nil
		case errors.Is(err, persistence.ErrUnavailable):
			return nil, err
		}
	}
	return sample, nil
}

func toStats(to *wire.FlowStats, s *stats.Stats) {
	n, times := s.Tasks()
	to.Sampled, to.Duration, to.Nodes = n, wire.Times(times), []wire.NodeStats{}
	for _, n := range s.Nodes() {
		to.Nodes = append(to.Nodes, wire.NodeStats{Scope: n.Scope, Key: n.Key, Visits: n.Visits, Failures: n.Failures, Retries: n.Retries, Duration: wire.Times(n.Times), LastFailed: n.LastFailed})
	}
}
