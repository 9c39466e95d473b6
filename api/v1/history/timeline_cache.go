package history

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/timeline"
)

const (
	timelineBytes = 64 << 20 // maximum bytes of cached timelines
	timelinesKept = 100
	timelinesRead = 2 // maximum number of journals that are read at once
)

type timelineKey struct {
	task    string
	created int64 // creation time of the task, because a later task may have the same id
	scope   string
}

// keptTimeline is a cached timeline up to a row. Later reads continue from that row.
type keptTimeline struct {
	key   timelineKey
	turn  chan struct{}
	t     *timeline.Timeline
	seq   int64
	bytes int // bytes that count for this timeline
}

// timelineCache caches recently read timelines.
type timelineCache struct {
	mu    sync.Mutex
	all   map[timelineKey]*keptTimeline
	bytes int
	turns *semaphore.Weighted
}

func newTimelines() *timelineCache {
	return &timelineCache{all: map[timelineKey]*keptTimeline{}, turns: semaphore.NewWeighted(timelinesRead)}
}

// findOrCreate returns the cache entry of a timeline. If there are too many entries, it drops all
// of them.
func (k *timelineCache) findOrCreate(key timelineKey, plan *flow.Plan) *keptTimeline {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept := k.all[key]; kept != nil {
		return kept
	}
	if len(k.all) >= timelinesKept {
		clear(k.all)
		k.bytes = 0
	}
	kept := &keptTimeline{key: key, turn: make(chan struct{}, 1), t: timeline.New(plan, key.scope)}
	k.all[key] = kept
	return kept
}

// useExclusively runs a function while no other caller uses the timeline. If the cache is too
// large, it drops all other entries.
func (k *timelineCache) useExclusively(ctx context.Context, kept *keptTimeline, what func() error) error {
	select {
	case kept.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-kept.turn }()
	if err := k.turns.Acquire(ctx, 1); err != nil {
		return err
	}
	defer k.turns.Release(1)
	err := what()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all[kept.key] != kept {
		return err
	}
	k.bytes += kept.t.Bytes() - kept.bytes
	kept.bytes = kept.t.Bytes()
	if k.bytes > timelineBytes && len(k.all) > 1 {
		clear(k.all)
		k.all[kept.key], k.bytes = kept, kept.bytes
	}
	return err
}
