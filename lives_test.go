package troupe

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// incarnation returns the incarnation of the member's present life.
func (e *Engine) incarnation() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.member == nil {
		return ""
	}
	return e.member.Incarnation()
}

// fence ends a member's life, like other members do after its host stood still for longer than its
// lease.
func fence(t *testing.T, store string, incarnation string) {
	t.Helper()
	s, err := OpenStore(t.Context(), store, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for fenced := false; !fenced; {
		_, err := s.Renew(t.Context(), incarnation, 0)
		require.NoError(t, err)
		fenced, err = s.Fence(t.Context(), incarnation)
		require.NoError(t, err)
	}
}

const jobThenSignal = `{"start":"a","nodes":{
	"a":{"exec_type":"local_func","func":"job","post":{"output_key":"done"}},
	"b":{"kind":"approval","params":{"approval_key":"$shared.ok"}}},
	"edges":[{"from":"a","action":"default","to":"b"}]}`

func TestAFencedMemberOfAProgramStartsANewLife(t *testing.T) {
	store := pgtest.DSN(t)
	e, err := Open(t.Context(), Config{Store: store})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	begun := make(chan int64, 10)
	var times atomic.Int64
	e.Handle("job", func(ctx context.Context, _ Job) (any, error) {
		n := times.Add(1)
		begun <- n
		if n == 1 {
			<-ctx.Done()
		}
		return 1, nil
	})
	require.NoError(t, e.Publish(t.Context(), "f", []byte(jobThenSignal)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id, err := e.Start(ctx, "f", nil)
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		result, err := e.Wait(ctx, id)
		if err == nil {
			require.EqualValues(t, "completed", result.Status)
		}
		waited <- err
	}()
	<-begun
	first := e.incarnation()
	fence(t, store, first)
	<-begun // without any request, the member continues by itself
	require.NotEqual(t, first, e.incarnation())
	require.Eventually(t, func() bool { return e.cursor(t, id) == "b" }, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, e.Signal(ctx, id, "ok", json.RawMessage("true")))
	require.NoError(t, <-waited, "who waited from before waits on")
	c, err := e.stores.Newest.Cluster(ctx)
	require.NoError(t, err)
	require.Len(t, c.Members, 2)
}

// watch reads a task's journal after a row until it ends, and returns the last row and the error.
func (e *Engine) watch(ctx context.Context, id string, after int64, seen chan<- int64) (int64, error) {
	member, err := e.Member(ctx)
	if err != nil {
		return after, err
	}
	for row, err := range member.Watch(ctx, id, after) {
		if err != nil {
			return after, err
		}
		after = row.Seq
		seen <- after
	}
	return after, ctx.Err()
}

func TestAWatchEndsWhenTheMemberIsFencedAndContinuesWithItsNextLife(t *testing.T) {
	store := pgtest.DSN(t)
	e := join(t, Config{Store: store})
	require.NoError(t, e.Publish(t.Context(), "f", waitsFor("a")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id, err := e.Start(ctx, "f", nil)
	require.NoError(t, err)
	seen, broken, over := make(chan int64, 100), make(chan error), make(chan error, 1)
	go func() {
		after, err := e.watch(ctx, id, 0, seen)
		for ; flow.ErrorKindOf(err) == flow.Busy; after, err = e.watch(ctx, id, after, seen) {
			select {
			case broken <- err: // only the first error is awaited
			default:
			}
		}
		over <- err
	}()
	<-seen
	first := e.incarnation()
	fence(t, store, first)
	select {
	case <-broken:
	case <-ctx.Done():
		require.FailNow(t, "the watch goes on with a life that is over")
	}
	require.Eventually(t, func() bool { return e.Signal(ctx, id, "ok", true) == nil }, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, <-over, "it ends with the task, and not before")
	result, err := e.Wait(ctx, id)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status)
	close(seen)
	last := int64(1)
	for seq := range seen {
		require.Equal(t, last+1, seq, "nothing is left out, nothing told twice")
		last = seq
	}
}

func TestNewsForAMemberThatIsBeingReplacedDoesNoHarm(t *testing.T) {
	store := pgtest.DSN(t)
	e := join(t, Config{Store: store})
	first, member := e.incarnation(), e.member
	over, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		for {
			select {
			case <-over:
				return
			default:
				member.Heard(engine.News{Workers: []engine.Worker{{ID: "w", URL: "queue", Type: "async", JoinedAt: 1}}})
			}
		}
	}()
	fence(t, store, first)
	require.Eventually(t, func() bool { now := e.incarnation(); return now != first && now != "" }, 30*time.Second, time.Millisecond)
	close(over)
	<-told
}

func TestAFencedMemberThatServedStartsANewLifeOnTheNextCall(t *testing.T) {
	store := pgtest.DSN(t)
	e, err := Open(t.Context(), Config{Store: store, Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.Publish(t.Context(), "f", waitsFor("a")))
	served := make(chan error)
	go func() { served <- e.Serve(t.Context(), nil) }()
	require.Eventually(t, func() bool { return e.incarnation() != "" }, 30*time.Second, 10*time.Millisecond)
	first := e.incarnation()
	fence(t, store, first)
	require.ErrorContains(t, <-served, "the member was fenced off")
	require.Equal(t, first, e.incarnation(), "the program is told, and says what happens next")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id, err := e.Start(ctx, "f", nil)
	require.NoError(t, err)
	require.NotEqual(t, first, e.incarnation())
	require.NoError(t, e.Cancel(ctx, id))
}

func TestAClosedMemberStartsNoNewLife(t *testing.T) {
	store := pgtest.DSN(t)
	e, err := Open(t.Context(), Config{Store: store})
	require.NoError(t, err)
	_, err = e.Member(t.Context())
	require.NoError(t, err)
	fence(t, store, e.incarnation())
	require.NoError(t, e.Close())
	s, err := OpenStore(t.Context(), store, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	c, err := s.Cluster(t.Context())
	require.NoError(t, err)
	for _, m := range c.Members {
		require.NotZero(t, m.FencedAt, "it has left whatever it was")
	}
}
