package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// single is the behavior of members on a store for only one member.
var single = []storeBehavior{
	{"a silent predecessor is waited for and fenced", func(w *testEnv) {
		begin, old := time.Now(), w.me
		_, err := w.Renew(w.ctx(), old, 200*time.Millisecond)
		require.NoError(w, err)
		w.me = w.joinMember("next", time.Hour)
		require.GreaterOrEqual(w, time.Since(begin), 150*time.Millisecond)
		_, err = w.Renew(w.ctx(), old, time.Hour)
		require.ErrorIs(w, err, persistence.ErrFenced)
		_, err = w.Commit(w.ctx(), old, []persistence.Commit{createCommit("a")})
		require.ErrorIs(w, err, persistence.ErrFenced)
		w.mustCommit(createCommit("a"))
	}},
	{"journals of a format that is not known are refused", func(w *testEnv) {
		require.NoError(w, w.Leave(w.ctx(), w.me))
		for _, format := range []int{2, 5} {
			incarnation, err := w.Join(w.ctx(), persistence.Joining{Name: "newer", Format: format, TTL: time.Hour})
			require.NoError(w, err)
			pulse, err := w.Renew(w.ctx(), incarnation, time.Hour)
			require.NoError(w, err)
			require.Equal(w, format, pulse.Format)
			require.NoError(w, w.Leave(w.ctx(), incarnation))
		}
		_, err := w.Join(w.ctx(), persistence.Joining{Name: "older", Format: 4, TTL: time.Hour})
		require.ErrorIs(w, err, persistence.ErrFormat)
		require.ErrorContains(w, err, "use a newer program")
	}},
	{"a predecessor that renews is taken, by its name", func(w *testEnv) {
		ctx, cancel := context.WithCancel(w.ctx())
		var renewals sync.WaitGroup
		renewals.Go(func() {
			for ctx.Err() == nil {
				_, err := w.Renew(ctx, w.me, time.Hour)
				require.True(w, err == nil || errors.Is(err, context.Canceled), "%v", err)
				sleepContext(ctx, 50*time.Millisecond)
			}
		})
		_, err := w.Join(w.ctx(), persistence.Joining{Name: "next", TTL: time.Hour})
		cancel()
		renewals.Wait()
		require.ErrorIs(w, err, persistence.ErrTaken)
		require.ErrorContains(w, err, "me")
		w.mustCommit(createCommit("a"))
	}},
	{"waiting for a predecessor ends with the context", func(w *testEnv) {
		ctx, cancel := context.WithTimeout(w.ctx(), 50*time.Millisecond)
		defer cancel()
		_, err := w.Join(ctx, persistence.Joining{Name: "next", TTL: time.Hour})
		require.ErrorIs(w, err, context.DeadlineExceeded)
		w.mustCommit(createCommit("a"))
	}},
	{"the member owns every shard, from its first moment on", func(w *testEnv) {
		for range 2 {
			c := w.readCluster()
			require.Equal(w, slices.Repeat([]string{w.me}, persistence.Shards), c.Owners)
			require.Equal(w, []int{3, 7}, requireList[int](w)(w.Claim(w.ctx(), w.me, []int{7, 3})))
			require.NoError(w, w.Release(w.ctx(), w.me, transfersTo("", 3)))
			require.Equal(w, c.Owners, w.readCluster().Owners)
			w.replaceMember()
			require.Greater(w, w.readCluster().Generation, c.Generation)
		}
	}},
}
