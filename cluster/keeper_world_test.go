package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// world is several members on one store, in virtual time. It checks that no shard has two owners.
type world struct {
	t       *testing.T
	store   persistence.Members
	step    atomic.Int64         // adjustment of the store's clock
	unheard bool                 // members do not reach each other by gossip
	losing  func() time.Duration // time that handing shards over takes

	mu      sync.Mutex
	members []*member
	holder  [persistence.Shards]*member
	since   [persistence.Shards]time.Time // time since which no member has had it
	longest time.Duration                 // longest time that a once owned shard had no owner
	gains   int                           // number of gained shards
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, losing: func() time.Duration { return 5 * time.Millisecond }}
		w.store = model.New(model.Options{Now: func() time.Time { return time.Now().Add(time.Duration(w.step.Load())) }})
		t.Cleanup(w.stop)
		f(t, w)
	})
}

func (w *world) stop() {
	for _, m := range w.members {
		m.kill()
		<-m.done
	}
}

// join starts a member with its lease and its keeper.
func (w *world) join(name string) *member {
	m := &member{w: w, name: name, link: &link{Members: w.store}, hints: make(chan struct{}, 1),
		done: make(chan struct{}), gone: map[string]int{}}
	var err error
	m.incarnation, err = w.store.Join(w.t.Context(), persistence.Joining{Name: name, TTL: DefaultTTL})
	require.NoError(w.t, err)
	m.since, m.renewed = time.Now(), time.Now()
	m.ctx, m.kill = context.WithCancel(context.Background())
	m.keeper = NewKeeper(KeeperConfig{
		Store: m.link, Local: m, Hints: m.hints, Announce: func() { w.announce(m) }, Log: slog.New(slog.DiscardHandler),
	})
	w.mu.Lock()
	w.members = append(w.members, m)
	w.mu.Unlock()
	go m.live()
	return m
}

func (w *world) announce(from *member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.members {
		if m != from && !w.unheard {
			m.hint()
		}
	}
}

// settled reports whether the live members own all shards, each at most its share.
func (w *world) settled() bool {
	v := w.look()
	p := newPlacement(v)
	w.mu.Lock()
	defer w.mu.Unlock()
	hold := map[*member]bool{}
	for _, m := range w.members {
		hold[m] = m.holds()
	}
	for shard, holder := range w.holder {
		if !hold[holder] || holder.incarnation != v.Owner(shard) {
			return false
		}
	}
	for owner, count := range v.countShards() {
		if count > p.shareOf(owner) {
			return false
		}
	}
	return true
}

// has reports whether a member has any shard, which is faster than reading the store.
func (w *world) has(m *member) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.holder[:], m)
}

func (w *world) look() *View {
	c, err := w.store.Cluster(w.t.Context())
	require.NoError(w.t, err)
	return NewView(c)
}

// within lets time pass until a condition is true, and returns how long that took.
func (w *world) within(limit time.Duration, what string, so func() bool) time.Duration {
	w.t.Helper()
	begun := time.Now()
	for ; !so(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > limit {
			v := w.look()
			require.FailNow(w.t, "not so in time: "+what, "%v %+v", v.countShards(), v.Members)
		}
	}
	return time.Since(begun)
}

// cluster starts members one after the other until all is settled.
func (w *world) cluster(names ...string) (members []*member) {
	w.t.Helper()
	for _, name := range names {
		m := w.join(name)
		members = append(members, m)
		w.within(5*time.Second, name+" has its share", func() bool { return w.has(m) && w.settled() })
	}
	return members
}

// member is a member without tasks.
type member struct {
	w                 *world
	name, incarnation string
	link              *link
	hints             chan struct{}
	keeper            *Keeper
	ctx               context.Context
	kill              context.CancelFunc
	done              chan struct{}
	err               error // error of its keeper
	refuse            atomic.Bool
	refused           atomic.Int64 // number of refusals

	mu             sync.Mutex
	since, renewed time.Time
	gone           map[string]int
}

func (m *member) live() {
	defer close(m.done)
	var renewals sync.WaitGroup
	defer renewals.Wait()
	defer m.kill()
	renewals.Go(m.renewing)
	m.err = m.keeper.Run(m.ctx)
}

func (m *member) renewing() {
	ticker := time.NewTicker(DefaultTTL / 5)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-m.ctx.Done():
			return
		}
		before := time.Now()
		// a hanging renewal must not cost the lease
		ctx, cancel := context.WithTimeout(m.ctx, DefaultTTL*2/5)
		pulse, err := m.link.Renew(ctx, m.incarnation, DefaultTTL)
		cancel()
		m.mu.Lock()
		switch {
		case err != nil:
			m.since = time.Time{}
		case m.since.IsZero() || before.Sub(m.renewed) > DefaultTTL*3/5:
			m.since = before
		}
		if err == nil {
			m.renewed = before
		}
		m.mu.Unlock()
		if err == nil {
			m.keeper.Pulse(pulse)
		}
	}
}

func (m *member) Incarnation() string { return m.incarnation }

func (m *member) Held() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since.IsZero() {
		return 0
	}
	return time.Since(m.since)
}

// holds reports whether the member is alive and, by its own clock, its lease runs.
func (m *member) holds() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ctx.Err() == nil && time.Since(m.renewed) < DefaultTTL
}

// Gain requires a view in which the shards are the member's own, because the member uses that view
// to ask about other members.
func (m *member) Gain(shards []int) {
	for _, shard := range shards {
		if owner := m.keeper.Current().Owner(shard); owner != m.incarnation {
			m.w.t.Errorf("shard %d is gained by %s, in whose view it is of %q", shard, m.name, owner)
			break
		}
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for _, shard := range shards {
		if other := m.w.holder[shard]; other != nil && other.holds() {
			m.w.t.Errorf("shard %d is gained by %s while %s has it", shard, m.name, other.name)
		}
		if since := m.w.since[shard]; !since.IsZero() {
			m.w.longest = max(m.w.longest, time.Since(since))
		}
		m.w.holder[shard] = m
		m.w.gains++
	}
}

func (m *member) Lose(ctx context.Context, shards []int) error {
	if m.refuse.Load() {
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		for _, shard := range shards {
			m.w.holder[shard] = nil // it accepts no more commands for them, but keeps them
		}
		m.refused.Add(1)
		return errors.New("not now")
	}
	begun := time.Now()
	select {
	case <-time.After(m.w.losing()):
	case <-ctx.Done():
		return ctx.Err()
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for _, shard := range shards {
		if m.w.holder[shard] != m {
			m.w.t.Errorf("shard %d is lost by %s, who does not have it", shard, m.name)
		}
		m.w.holder[shard], m.w.since[shard] = nil, begun
	}
	return nil
}

func (m *member) Gone(incarnation string, _ bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[incarnation]++
}

func (m *member) told(incarnation string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[incarnation]
}

func (m *member) hint() {
	select {
	case m.hints <- struct{}{}:
	default:
	}
}
