package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// link is a member's connection to the store.
type link struct {
	persistence.Members
	down   atomic.Bool  // all calls fail
	silent atomic.Bool  // calls get no result
	lose   atomic.Value // name of a call whose next result is lost
	// by how much the generation has gone back, as in a store restored from a copy
	back  atomic.Int64
	fails atomic.Value // "Fence" and the incarnation that cannot be fenced
	calls sync.Map     // number of calls by name
}

var errDown = fmt.Errorf("down: %w", persistence.ErrUnavailable)

func through[T any](ctx context.Context, l *link, name string, do func() (T, error)) (T, error) {
	count, _ := l.calls.LoadOrStore(name, new(atomic.Int64))
	count.(*atomic.Int64).Add(1)
	var none T
	if l.down.Load() {
		if l.silent.Load() {
			<-ctx.Done()
		}
		return none, errDown
	}
	answer, err := do()
	if l.lose.CompareAndSwap(name, "") {
		return none, errDown
	}
	return answer, err
}

func (l *link) count(names ...string) (n int64) {
	l.calls.Range(func(name, count any) bool {
		if len(names) == 0 || strings.Contains(strings.Join(names, " "), name.(string)) {
			n += count.(*atomic.Int64).Load()
		}
		return true
	})
	return n
}

func (l *link) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	pulse, err := through(ctx, l, "Renew", func() (persistence.Pulse, error) { return l.Members.Renew(ctx, incarnation, ttl) })
	pulse.Generation -= l.back.Load()
	return pulse, err
}

func (l *link) Cluster(ctx context.Context) (*persistence.Cluster, error) {
	c, err := through(ctx, l, "Cluster", func() (*persistence.Cluster, error) { return l.Members.Cluster(ctx) })
	if err == nil {
		c.Generation -= l.back.Load()
	}
	return c, err
}

func (l *link) Claim(ctx context.Context, incarnation string, shards []int) ([]int, error) {
	return through(ctx, l, "Claim", func() ([]int, error) { return l.Members.Claim(ctx, incarnation, shards) })
}

func (l *link) Release(ctx context.Context, incarnation string, transfers []persistence.Transfer) error {
	_, err := through(ctx, l, "Release", func() (struct{}, error) { return struct{}{}, l.Members.Release(ctx, incarnation, transfers) })
	return err
}

func (l *link) Fence(ctx context.Context, incarnation string) (bool, error) {
	if l.fails.Load() == "Fence "+incarnation {
		return false, errDown
	}
	return through(ctx, l, "Fence", func() (bool, error) { return l.Members.Fence(ctx, incarnation) })
}

func (l *link) Drain(ctx context.Context, incarnation string, drains bool) error {
	_, err := through(ctx, l, "Drain", func() (struct{}, error) { return struct{}{}, l.Members.Drain(ctx, incarnation, drains) })
	return err
}
