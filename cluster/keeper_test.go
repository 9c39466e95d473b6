package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/model"
)

// world is several members over one store, in virtual time. It sees to it that no shard is anybody's twice.
type world struct {
	t      *testing.T
	store  persistence.Members
	deaf   bool                 // members do not hear each other by gossip
	losing func() time.Duration // how long it takes to hand shards over

	mu      sync.Mutex
	members []*member
	holder  [persistence.Shards]*member
	since   [persistence.Shards]time.Time // when nobody had it any more
	longest time.Duration                 // that nobody had a shard which somebody had had
	gains   int                           // of single shards
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: model.New(model.Options{}), losing: func() time.Duration { return 5 * time.Millisecond }}
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
	m := &member{w: w, name: name, link: &link{Members: w.store}, hints: make(chan struct{}, 1), done: make(chan struct{}), gone: map[string]int{}}
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
		if m != from && !w.deaf {
			m.hint()
		}
	}
}

// settled says whether the members that live own everything, each no more than its share.
func (w *world) settled() bool {
	v := w.look()
	p := placing(v)
	w.mu.Lock()
	defer w.mu.Unlock()
	for shard, holder := range w.holder {
		if holder == nil || !holder.holds() || holder.incarnation != v.Owner(shard) {
			return false
		}
	}
	for owner, count := range v.counts() {
		if count > p.shareOf(owner) {
			return false
		}
	}
	return true
}

func (w *world) look() *View {
	c, err := w.store.Cluster(w.t.Context())
	require.NoError(w.t, err)
	return NewView(c)
}

// within lets time go on until something is so, and tells how long that took.
func (w *world) within(limit time.Duration, what string, so func() bool) time.Duration {
	w.t.Helper()
	begun := time.Now()
	for ; !so(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > limit {
			v := w.look()
			require.FailNow(w.t, "not so in time: "+what, "%v %+v", v.counts(), v.Members)
		}
	}
	return time.Since(begun)
}

// cluster starts members one after the other until all is settled.
func (w *world) cluster(names ...string) (members []*member) {
	w.t.Helper()
	for _, name := range names {
		members = append(members, w.join(name))
		w.within(5*time.Second, name+" has its share", w.settled)
	}
	return members
}

// member is one that has no tasks.
type member struct {
	w                 *world
	name, incarnation string
	link              *link
	hints             chan struct{}
	keeper            *Keeper
	ctx               context.Context
	kill              context.CancelFunc
	done              chan struct{}
	err               error // of its keeper
	refuse            atomic.Bool

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
		ctx, cancel := context.WithTimeout(m.ctx, DefaultTTL*2/5) // one that hangs must not cost the lease
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

// holds says whether it lives and may believe, by its own clock, that its lease runs.
func (m *member) holds() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ctx.Err() == nil && time.Since(m.renewed) < DefaultTTL
}

func (m *member) Gain(shards []int) {
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

func (m *member) Gone(incarnation string) {
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

// link is a member's way to the store.
type link struct {
	persistence.Members
	down   atomic.Bool  // it fails …
	silent atomic.Bool  // … and nothing comes back
	lose   atomic.Value // the name of a call whose next answer is lost
	calls  sync.Map     // how often each was called
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
	return through(ctx, l, "Renew", func() (persistence.Pulse, error) { return l.Members.Renew(ctx, incarnation, ttl) })
}

func (l *link) Cluster(ctx context.Context) (*persistence.Cluster, error) {
	return through(ctx, l, "Cluster", func() (*persistence.Cluster, error) { return l.Members.Cluster(ctx) })
}

func (l *link) Claim(ctx context.Context, incarnation string, shards []int) ([]int, error) {
	return through(ctx, l, "Claim", func() ([]int, error) { return l.Members.Claim(ctx, incarnation, shards) })
}

func (l *link) Release(ctx context.Context, incarnation string, shards []int) error {
	_, err := through(ctx, l, "Release", func() (struct{}, error) { return struct{}{}, l.Members.Release(ctx, incarnation, shards) })
	return err
}

func (l *link) Fence(ctx context.Context, incarnation string) (bool, error) {
	return through(ctx, l, "Fence", func() (bool, error) { return l.Members.Fence(ctx, incarnation) })
}

func (l *link) Drain(ctx context.Context, incarnation string, drains bool) error {
	_, err := through(ctx, l, "Drain", func() (struct{}, error) { return struct{}{}, l.Members.Drain(ctx, incarnation, drains) })
	return err
}

func TestAMemberAloneTakesEverythingAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.join("a")
		require.Less(t, w.within(time.Second, "a owns all", w.settled), 10*time.Millisecond)
	})
}

func TestAJoinerGetsItsShareByHandover(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprintf("deaf %v", deaf), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.deaf = deaf
				w.cluster("a", "b")
				w.gains, w.longest = 0, 0
				w.join("c")
				took := w.within(10*time.Second, "c has its share", w.settled)
				require.Equal(t, persistence.Shards/3-1, w.gains, "what moved is what c got")
				require.LessOrEqual(t, w.longest, 500*time.Millisecond, "that a shard was nobody's")
				if !deaf {
					require.Less(t, w.longest, 50*time.Millisecond)
					require.Less(t, took, time.Second)
				}
			})
		})
	}
}

func TestMembersThatJoinTogetherSettle(t *testing.T) {
	for seed := range uint64(20) {
		inWorld(t, func(t *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 0))
			w.deaf = seed%2 == 0
			w.losing = func() time.Duration { return time.Duration(5+seed*10) * time.Millisecond }
			for i := range 2 + rng.IntN(5) {
				w.join(fmt.Sprintf("m%d", i))
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			}
			w.within(20*time.Second, "all have their share", w.settled)
		})
	}
}

func TestALeaverHandsOverFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b", "c")
		w.gains, w.longest = 0, 0
		a := members[0]
		owned := len(w.look().Shards(a.incarnation))
		require.NoError(t, a.keeper.Leave(t.Context()))
		require.Empty(t, w.look().Shards(a.incarnation))
		require.True(t, w.look().Lives(a.incarnation), "it lives until it gives its lease back")
		w.within(time.Second, "the others own all", w.settled)
		require.Equal(t, owned, w.gains)
		require.Less(t, w.longest, 50*time.Millisecond)
		require.Zero(t, members[1].told(a.incarnation))

		require.NoError(t, w.store.Leave(t.Context(), a.incarnation))
		w.within(time.Second, "they know that it has gone", func() bool {
			return members[1].told(a.incarnation) == 1 && members[2].told(a.incarnation) == 1
		})
		time.Sleep(time.Minute)
		require.Equal(t, 1, members[1].told(a.incarnation), "told once")
		require.NoError(t, a.err, "it was asked to go")
	})
}

func TestWhoIsToldToDrainHandsOverAndTakesNothingUntilToldToStay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b", "c")
		a := members[0]
		require.NoError(t, w.store.Drain(t.Context(), a.incarnation, true), "anybody may say so")
		w.within(5*time.Second, "the others own all", func() bool { return len(w.look().Shards(a.incarnation)) == 0 && w.settled() })
		members[1].kill()
		w.within(5*time.Second, "c owns all", w.settled)
		require.Empty(t, w.look().Shards(a.incarnation))
		require.NoError(t, a.ctx.Err(), "it lives")

		require.NoError(t, w.store.Drain(t.Context(), a.incarnation, false))
		w.within(5*time.Second, "it has its share again", func() bool { return len(w.look().Shards(a.incarnation)) == persistence.Shards/2 && w.settled() })
	})
}

func TestALeaverThatIsToldToStayLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a", "b")[0]
		a.refuse.Store(true)
		left := make(chan error)
		go func() { left <- a.keeper.Leave(t.Context()) }()
		w.within(5*time.Second, "it drains", func() bool { m, _ := w.look().Member(a.incarnation); return m.Draining })
		require.NoError(t, w.store.Drain(t.Context(), a.incarnation, false))
		time.Sleep(5 * time.Second)
		a.refuse.Store(false)
		require.NoError(t, <-left)
		require.Empty(t, w.look().Shards(a.incarnation))
	})
}

func TestTheLastMemberLeavesAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a")[0]
		begun := time.Now()
		require.NoError(t, a.keeper.Leave(t.Context()))
		require.Less(t, time.Since(begun), 50*time.Millisecond)
	})
}

func TestALeaveThatTakesTooLongIsGivenUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a", "b")[0]
		a.refuse.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := a.keeper.Leave(ctx)
		require.ErrorContains(t, err, "512 shards were not handed over")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.refuse.Store(false)
		w.within(2*time.Second, "it is tried on", func() bool { return len(w.look().Shards(a.incarnation)) == 0 })
	})
}

func TestTheShardsOfAMemberThatDiesAreTakenWhenItsLeaseHasRunOut(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			w.deaf = deaf
			members := w.cluster("a", "b", "c")
			time.Sleep(10*time.Second + 150*time.Millisecond)
			w.gains = 0
			dead := members[0]
			dead.kill()
			row, _ := w.look().Member(dead.incarnation)
			owned := len(w.look().Shards(dead.incarnation))
			left := time.Until(time.UnixMilli(row.Until))
			if !deaf { // gossip notices it some time before its lease has run out
				time.AfterFunc(left/2, members[1].hint)
			}
			took := w.within(5*time.Second, "the others own all", w.settled)
			require.GreaterOrEqual(t, took, left)
			require.LessOrEqual(t, took, 2800*time.Millisecond)
			if !deaf {
				require.LessOrEqual(t, took, left+20*time.Millisecond)
			}
			require.Equal(t, owned, w.gains)
			for _, m := range members[1:] {
				w.within(time.Second, "it is told", func() bool { return m.told(dead.incarnation) == 1 })
			}
		})
	}
}

func TestAMemberThatIsStartedAgainTakesOverFromItselfWithoutWaiting(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.cluster("a")[0]
		first.kill()
		time.Sleep(time.Hour)
		w.join("a")
		require.Less(t, w.within(time.Second, "it owns all", w.settled), 20*time.Millisecond)
	})
}

func TestAMemberCutOffFromTheStoreLosesItsShards(t *testing.T) {
	for _, silent := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			members := w.cluster("a", "b", "c")
			time.Sleep(10 * time.Second)
			cut := members[1]
			cut.link.silent.Store(silent)
			cut.link.down.Store(true)
			w.within(3*time.Second, "the others own all", func() bool { return !w.look().Lives(cut.incarnation) && w.settled() })
			require.NoError(t, cut.ctx.Err())
			cut.link.down.Store(false)
			<-cut.done
			require.ErrorIs(t, cut.err, persistence.ErrFenced)
			require.ErrorContains(t, cut.err, cut.incarnation)
		})
	}
}

func TestAfterAnOutageOfTheStoreNobodyTakesShards(t *testing.T) {
	for seed := range uint64(30) {
		inWorld(t, func(t *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 0))
			members := w.cluster("a", "b", "c", "d")
			time.Sleep(5*time.Second + time.Duration(rng.IntN(2000))*time.Millisecond)
			w.gains = 0
			for _, m := range members {
				m.link.silent.Store(rng.IntN(2) == 0)
				m.link.down.Store(true)
			}
			time.Sleep(time.Duration(rng.IntN(15_000)) * time.Millisecond)
			// They reach it again one after the other, the last one well within the lease of the first.
			for _, i := range rng.Perm(len(members)) {
				members[i].link.down.Store(false)
				members[i].hint()
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			}
			time.Sleep(10 * time.Second)
			require.Zero(t, w.gains, "seed %d", seed)
			require.Len(t, w.look().Living(), 4)
		})
	}
}

func TestWhoDoesNotComeBackAfterAnOutageIsFencedWhenTheOthersHaveHeldTheirLeases(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b", "c")
		time.Sleep(5 * time.Second)
		for _, m := range members {
			m.link.down.Store(true)
		}
		time.Sleep(5 * time.Second)
		for _, m := range members[1:] {
			m.link.down.Store(false)
		}
		took := w.within(5*time.Second, "the others own all", w.settled)
		require.GreaterOrEqual(t, took, DefaultTTL)
		require.LessOrEqual(t, took, DefaultTTL+time.Second)
	})
}

func TestHalvesThatDoNotHearEachOtherDoNotFight(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.deaf = true
		members := w.cluster("a", "b", "c", "d")
		w.gains = 0
		rng := rand.New(rand.NewPCG(1, 1))
		for range 300 { // each half believes that the other one has died, and hears so again and again
			members[rng.IntN(len(members))].hint()
			time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		}
		require.Zero(t, w.gains)
		for _, m := range members {
			require.Zero(t, m.link.count("Fence"))
		}
	})
}

func TestASuspicionMakesAKeeperLookAndTakesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a", "b")[0]
		time.Sleep(10 * time.Second)
		before, gains := a.link.count("Cluster"), w.gains
		a.hint()
		time.Sleep(time.Millisecond)
		require.Equal(t, before+1, a.link.count("Cluster"), "it has looked")
		time.Sleep(5 * time.Second)
		require.Zero(t, a.link.count("Fence"))
		require.Equal(t, gains, w.gains)
	})
}

func TestHintsInCrowdsAreOneLook(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a")[0]
		time.Sleep(10 * time.Second)
		before := a.link.count("Cluster")
		for range 1000 {
			a.hint()
			a.keeper.Look()
			time.Sleep(100 * time.Microsecond)
		}
		require.LessOrEqual(t, a.link.count("Cluster")-before, int64(12))
	})
}

func TestALostAnswerIsMadeGood(t *testing.T) {
	for _, call := range []string{"Claim", "Release", "Fence", "Cluster"} {
		t.Run(call, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				members := w.cluster("a", "b", "c")
				time.Sleep(5 * time.Second)
				for _, m := range members {
					m.link.lose.Store(call)
				}
				members[0].kill()
				d := w.join("d")
				d.link.lose.Store(call)
				w.within(15*time.Second, "all have their share", w.settled)
				time.Sleep(5 * time.Second)
				require.True(t, w.settled())
			})
		})
	}
}

func TestAHandoverThatFailsIsTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a")[0]
		a.refuse.Store(true)
		w.join("b")
		time.Sleep(5 * time.Second)
		require.Len(t, w.look().Shards(a.incarnation), persistence.Shards)
		a.refuse.Store(false)
		w.within(5*time.Second, "b has its share", w.settled)
	})
}

func TestWhatTheStoreTakesAwayIsGivenUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b")
		a, b := members[0], members[1]
		taken := w.look().Shards(a.incarnation)[:5]
		b.link.down.Store(true)
		require.NoError(t, w.store.Release(t.Context(), a.incarnation, taken))
		_, err := w.store.Claim(t.Context(), b.incarnation, taken)
		require.NoError(t, err)
		w.within(time.Second, "a has given them up", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.holder[taken[0]] == nil
		})
		b.link.down.Store(false)
		w.within(5*time.Second, "all is in its place again", w.settled)
	})
}

func TestAnIdleClusterAsksTheStoreRarely(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b", "c")
		time.Sleep(10 * time.Second)
		count := func() (n int64) {
			for _, m := range members {
				n += m.link.count()
			}
			return n
		}
		before := count()
		time.Sleep(100 * time.Second)
		require.LessOrEqual(t, float64(count()-before)/100, 9.1, "7.5 of which are renewals")
	})
}

func TestTheViewIsThereForOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		require.NotNil(t, a.keeper.Current())
		<-a.keeper.Changed(0)
		w.within(time.Second, "a owns all", w.settled)
		synctest.Wait()
		v := a.keeper.Current()
		changed := a.keeper.Changed(v.Generation)
		time.Sleep(10 * time.Second)
		select {
		case <-changed:
			require.Fail(t, "nothing has changed")
		default:
		}
		w.join("b")
		<-changed
		require.Greater(t, a.keeper.Current().Generation, v.Generation)
		<-a.keeper.Changed(v.Generation)
	})
}

// Whatever happens to the members, no shard is anybody's twice, and in the end everything is owned.
func TestLivesOfAClusterByChance(t *testing.T) {
	for seed := range uint64(25) {
		inWorld(t, func(t *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 2))
			w.losing = func() time.Duration { return time.Duration(rand.IntN(50)) * time.Millisecond }
			w.deaf = rng.IntN(2) == 0
			w.cluster("m0", "m1", "m2")
			for i := range 12 {
				m := w.members[rng.IntN(len(w.members))]
				switch rng.IntN(6) {
				case 0:
					w.join(fmt.Sprintf("m%d", i+3))
				case 1:
					m.kill()
				case 2:
					go func() {
						if m.keeper.Leave(m.ctx) == nil {
							m.kill()
						}
					}()
				case 3:
					m.link.silent.Store(rng.IntN(2) == 0)
					m.link.down.Store(true)
				case 4:
					m.link.down.Store(false)
				case 5:
					m.link.lose.Store([]string{"Claim", "Release", "Fence", "Cluster", "Renew"}[rng.IntN(5)])
				}
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
			}
			for _, m := range w.members {
				m.link.down.Store(false)
			}
			w.join("last")
			w.within(30*time.Second, fmt.Sprint("all is owned, seed ", seed), w.settled)
		})
	}
}
