package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

var members = []storeBehavior{
	{"nobody writes who has not joined", func(w *testEnv) {
		_, err := w.Commit(w.ctx(), "stranger", []persistence.Commit{createCommit("a")})
		require.ErrorIs(w, err, persistence.ErrFenced)
		pulse, err := w.Renew(w.ctx(), "stranger", time.Second)
		require.ErrorIs(w, err, persistence.ErrFenced)
		require.ErrorIs(w, err, persistence.ErrRewound, "the store does not know it")
		require.NotEmpty(w, pulse.History)
		require.WithinDuration(w, time.Now(), pulse.Now, time.Minute)
		require.Nil(w, w.loadTask("a"))
	}},
	{"renewals are counted, and each says when the one before was", func(w *testEnv) {
		first, err := w.Renew(w.ctx(), w.me, time.Hour)
		require.NoError(w, err)
		require.EqualValues(w, 1, first.Renewals)
		second, err := w.Renew(w.ctx(), w.me, time.Minute)
		require.NoError(w, err)
		require.EqualValues(w, 2, second.Renewals)
		require.InDelta(w, first.Now.UnixMilli(), second.Before, 1)
		require.Equal(w, first.History, second.History)
		require.Zero(w, second.Kept)
		require.Nil(w, second.Takeover)
	}},
	{"another history ends all members, once", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		before, err := w.Renew(w.ctx(), w.me, time.Hour)
		require.NoError(w, err)
		require.NoError(w, w.BeginHistory(w.ctx(), before.History, 0))
		_, err = w.Commit(w.ctx(), w.me, []persistence.Commit{appendCommit("a", 2)})
		require.ErrorIs(w, err, persistence.ErrFenced)
		after, err := w.Renew(w.ctx(), w.me, time.Hour)
		require.ErrorIs(w, err, persistence.ErrFenced)
		require.NotErrorIs(w, err, persistence.ErrRewound, "the store knows it")
		require.NotEqual(w, before.History, after.History)
		require.InDelta(w, before.Now.UnixMilli(), after.Kept, 1)
		require.Greater(w, w.readCluster().Generation, before.Generation)
		require.Equal(w, make([]string, persistence.Shards), w.readCluster().Owners)

		w.me = w.joinMember("next", time.Hour)
		require.NoError(w, w.BeginHistory(w.ctx(), before.History, 0), "somebody else has begun one")
		now, err := w.Renew(w.ctx(), w.me, time.Hour)
		require.NoError(w, err)
		require.Equal(w, after.History, now.History)
		w.mustCommit(appendCommit("a", 2))

		require.NoError(w, w.BeginHistory(w.ctx(), now.History, 5))
		now, err = w.Renew(w.ctx(), w.me, time.Hour)
		require.ErrorIs(w, err, persistence.ErrFenced)
		require.EqualValues(w, 5, now.Kept)
	}},
	{"who has left writes nothing, whatever it is", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"))
		require.NoError(w, w.Leave(w.ctx(), w.me))
		for name, c := range map[string]persistence.Commit{
			"a first row":  createCommit("c"),
			"a row":        appendCommit("a", 2),
			"a stale row":  appendCommit("a", 1),
			"a rest":       {Task: "a", Seq: 1, Rest: &persistence.Rest{Resting: true, Due: 5}},
			"columns":      {Task: "a", Seq: 1, Columns: &persistence.Columns{Status: "running"}},
			"a snapshot":   {Task: "a", Seq: 1, Snapshot: newSnapshot("{}")},
			"a job":        {Task: "a", Seq: 1, Enqueue: []persistence.QueueRow{{JobID: "j", Task: "a"}}},
			"unknown task": appendCommit("x", 2),
		} {
			_, err := w.Commit(w.ctx(), w.me, []persistence.Commit{c})
			require.ErrorIs(w, err, persistence.ErrFenced, name)
			_, err = w.Commit(w.ctx(), w.me, []persistence.Commit{c, appendCommit("b", 2)})
			require.ErrorIs(w, err, persistence.ErrFenced, name)
		}
		r := w.loadTask("a")
		require.Len(w, r.Rows, 1)
		require.Equal(w, "pending", r.Status)
		require.Nil(w, r.Snapshot)
		require.False(w, r.Resting)
		require.Nil(w, w.loadTask("c"))
		require.Empty(w, requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), nil, 0, "", 9)))
	}},
	{"who has left is not waited for", func(w *testEnv) {
		require.NoError(w, w.Leave(w.ctx(), w.me))
		require.True(w, w.readCluster().Members[0].Left(), "in order")
		w.me = w.joinMember("next", time.Hour)
		w.mustCommit(createCommit("a"))
	}},
	{"leaving twice does no harm", func(w *testEnv) {
		require.NoError(w, w.Leave(w.ctx(), w.me))
		require.NoError(w, w.Leave(w.ctx(), w.me))
		w.joinMember("next", time.Hour)
		require.NoError(w, w.Leave(w.ctx(), w.me))
	}},
	{"a lease that ran out may be renewed while nobody took it", func(w *testEnv) {
		_, err := w.Renew(w.ctx(), w.me, 0)
		require.NoError(w, err)
		pulse, err := w.Renew(w.ctx(), w.me, time.Hour)
		require.NoError(w, err)
		require.WithinDuration(w, time.Now(), pulse.Now, time.Minute)
		w.mustCommit(createCommit("a"))
	}},
	{"a member of another cluster is refused", func(w *testEnv) {
		require.NoError(w, w.Leave(w.ctx(), w.me))
		_, err := w.Join(w.ctx(), persistence.Joining{Name: "stranger", Cluster: "south", TTL: time.Hour})
		require.ErrorIs(w, err, persistence.ErrStranger)
		require.ErrorContains(w, err, `"south"`)
		c := w.readCluster()
		require.Len(w, c.Members, 1, "nothing was changed")
		w.me = w.joinMember("next", time.Hour)
		w.mustCommit(createCommit("a"))
	}},
	{"where large values are kept is noted, and who does without is refused", func(w *testEnv) {
		at := func(want string) {
			got, err := w.ValuesAt(w.ctx())
			require.NoError(w, err)
			require.Equal(w, want, got)
		}
		join := func(values string) (string, error) {
			return w.Join(w.ctx(), persistence.Joining{Name: "member", Values: values, TTL: time.Hour})
		}
		at("")
		if !w.Locked() {
			_, err := join("/srv/values")
			require.ErrorIs(w, err, persistence.ErrPlace)
			require.ErrorContains(w, err, "stop all members first")
			at("")
		}
		require.NoError(w, w.Leave(w.ctx(), w.me))
		first, err := join("/srv/values")
		require.NoError(w, err)
		at("/srv/values")
		require.NoError(w, w.Leave(w.ctx(), first))
		_, err = join("")
		require.ErrorIs(w, err, persistence.ErrPlace)
		require.ErrorContains(w, err, "/srv/values")
		require.ErrorContains(w, err, "--payload-store")
		w.me, err = join("/mnt/values")
		require.NoError(w, err, "the same place may be reached in another way")
		at("/mnt/values")
		w.mustCommit(createCommit("a"))
	}},
	{"there is one secret, whoever asks", func(w *testEnv) {
		told := make([]string, 8)
		var asking sync.WaitGroup
		for i := range told {
			asking.Go(func() {
				secret, err := w.Secret(w.ctx())
				assert.NoError(w, err)
				told[i] = secret
			})
		}
		asking.Wait()
		require.GreaterOrEqual(w, len(told[0]), 20)
		require.Len(w, slices.Compact(told), 1)
		require.NoError(w, w.Leave(w.ctx(), w.me))
		w.me = w.joinMember("next", time.Hour)
		again, err := w.Secret(w.ctx())
		require.NoError(w, err)
		require.Equal(w, told[0], again)
	}},
	{"nothing lands after a takeover", func(w *testEnv) { checkTakeover(w) }},
	{"renewals and batches do not disturb each other", func(w *testEnv) {
		ctx, cancel := context.WithCancel(w.ctx())
		var renewals sync.WaitGroup
		renewals.Go(func() {
			for ctx.Err() == nil {
				_, err := w.Renew(ctx, w.me, time.Hour)
				require.True(w, err == nil || errors.Is(err, context.Canceled), "%v", err)
			}
		})
		w.mustCommit(createCommit("a"))
		for seq := int64(2); seq < 200; seq++ {
			w.mustCommit(appendCommit("a", seq))
		}
		cancel()
		renewals.Wait()
	}},
}

// replaceMember lets the member's lease expire and another member take over.
func (w *testEnv) replaceMember() {
	w.Helper()
	_, err := w.Renew(w.ctx(), w.me, 0)
	require.NoError(w, err)
	if !w.Locked() {
		fenced, err := w.Fence(w.ctx(), w.me)
		require.NoError(w, err)
		require.True(w, fenced)
		require.False(w, w.readCluster().Members[0].Left(), "in order")
	}
	w.me = w.joinMember("next", time.Hour)
}

// checkTakeover lets a member write from two goroutines until a successor has fenced it, and then
// checks that no more rows appear.
func checkTakeover(w *testEnv) {
	old := w.me
	var writers, begun sync.WaitGroup
	for lane := range 2 {
		id := fmt.Sprint("task", lane)
		w.mustCommit(createCommit(id))
		begun.Add(1)
		writers.Go(func() {
			for seq := int64(2); ; seq++ {
				answers, err := w.Commit(w.ctx(), old, []persistence.Commit{appendCommit(id, seq)})
				if err != nil {
					require.ErrorIs(w, err, persistence.ErrFenced)
					return
				}
				require.NoError(w, answers[0])
				if seq == 2 {
					begun.Done()
				}
			}
		})
	}
	begun.Wait() // even on a slow machine both have written before the lease expires
	w.replaceMember()
	first := []int{len(w.loadTask("task0").Rows), len(w.loadTask("task1").Rows)}
	writers.Wait()
	require.Equal(w, first, []int{len(w.loadTask("task0").Rows), len(w.loadTask("task1").Rows)})
	require.Greater(w, first[0], 1, "the predecessor wrote something")
}

func sleepContext(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
