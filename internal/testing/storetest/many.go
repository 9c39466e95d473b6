package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func (w *testEnv) readCluster() *persistence.Cluster {
	w.Helper()
	c, err := w.Cluster(w.ctx())
	require.NoError(w, err)
	require.Len(w, c.Owners, persistence.Shards)
	return c
}

// claimShards claims shards and returns the shards that the incarnation owns afterwards.
func (w *testEnv) claimShards(incarnation string, shards ...int) []int {
	w.Helper()
	return requireList[int](w)(w.Claim(w.ctx(), incarnation, shards))
}

// expireLease lets a lease expire.
func (w *testEnv) expireLease(incarnation string) {
	w.Helper()
	_, err := w.Renew(w.ctx(), incarnation, 0)
	require.NoError(w, err)
}

func (w *testEnv) fenceMember(incarnation string) bool {
	w.Helper()
	ended, err := w.Fence(w.ctx(), incarnation)
	require.NoError(w, err)
	return ended
}

// growsGeneration reports whether do makes the generation grow.
func (w *testEnv) growsGeneration(do func()) bool {
	w.Helper()
	before := w.readCluster().Generation
	do()
	after := w.readCluster().Generation
	require.GreaterOrEqual(w, after, before)
	pulse, err := w.Renew(w.ctx(), w.me, time.Hour)
	require.NoError(w, err)
	require.Equal(w, after, pulse.Generation, "a renewal tells it, too")
	return after > before
}

// many is the behavior of members on a store on which several can live.
var many = []storeBehavior{
	{"members live beside each other, and say who and where they are", func(w *testEnv) {
		other, err := w.Join(w.ctx(), persistence.Joining{Name: "other", URL: "http://other",
			Gossip: "other:1", Version: "v2", TTL: time.Minute})
		require.NoError(w, err)
		c := w.readCluster()
		require.Len(w, c.Members, 2)
		me, they := c.Members[0], c.Members[1]
		require.Equal(w, []string{w.me, "me", "", "", ""}, []string{me.Incarnation, me.Name, me.URL, me.Gossip, me.Version})
		require.Equal(w, []string{other, "other", "http://other", "other:1", "v2"},
			[]string{they.Incarnation, they.Name, they.URL, they.Gossip, they.Version})
		require.Greater(w, they.JoinedAt, me.JoinedAt)
		require.InDelta(w, c.Now+time.Minute.Milliseconds(), they.Until, 30_000)
		require.Zero(w, they.FencedAt)
		require.Equal(w, slices.Repeat([]string{""}, persistence.Shards), c.Owners, "who joins owns nothing")
		w.mustCommit(createCommit("a"))
		answers, err := w.Commit(w.ctx(), other, []persistence.Commit{createCommit("b"), appendCommit("a", 2)})
		require.NoError(w, err)
		require.Equal(w, []error{nil, nil}, answers)
	}},
	{"who has another secret is refused as long as others live", func(w *testEnv) {
		require.NoError(w, w.Leave(w.ctx(), w.me))
		join := func(seal string) (string, error) {
			return w.Join(w.ctx(), persistence.Joining{Name: "member", Seal: seal, TTL: time.Hour})
		}
		a, err := join("ours")
		require.NoError(w, err)
		b, err := join("ours")
		require.NoError(w, err)
		before := w.readCluster()
		_, err = join("theirs")
		require.ErrorIs(w, err, persistence.ErrStranger)
		require.ErrorContains(w, err, "its members have another secret")
		after := w.readCluster()
		require.Equal(w, []any{before.Generation, before.Members}, []any{after.Generation, after.Members}, "nothing was changed")
		require.NoError(w, w.Leave(w.ctx(), a))
		w.expireLease(b)
		w.me, err = join("theirs")
		require.NoError(w, err)
	}},
	{"journals are written in the newest format that all know who live", func(w *testEnv) {
		require.NoError(w, w.Leave(w.ctx(), w.me))
		refused := func(format int) error {
			_, err := w.Join(w.ctx(), persistence.Joining{Name: "stranger", Format: format, TTL: time.Hour})
			return err
		}
		known := func(format int) string {
			incarnation, err := w.Join(w.ctx(), persistence.Joining{Name: "member", Format: format, TTL: time.Hour})
			require.NoError(w, err)
			return incarnation
		}
		written := func(by string) int {
			pulse, err := w.Renew(w.ctx(), by, time.Hour)
			require.NoError(w, err)
			return pulse.Format
		}
		a, b := known(3), known(3)
		require.Equal(w, 3, written(a))
		c := known(4)
		require.Equal(w, []int{3, 3}, []int{written(a), written(c)}, "all have to know the newer one")
		require.NoError(w, w.Leave(w.ctx(), a))
		require.Equal(w, 3, written(c))
		back := known(3)
		require.NoError(w, w.Leave(w.ctx(), back), "until then an upgrade can be taken back")
		w.expireLease(b)
		require.Equal(w, 3, written(c), "who is silent may come back")
		require.True(w, w.fenceMember(b))
		require.Equal(w, 4, written(c))

		before := w.readCluster()
		err := refused(3)
		require.ErrorIs(w, err, persistence.ErrFormat)
		require.ErrorContains(w, err, "in format 4, and this program knows up to 3: use a newer program")
		err = refused(6)
		require.ErrorIs(w, err, persistence.ErrFormat)
		require.ErrorContains(w, err, "this program writes 5 and 6: upgrade by one release after the other, or stop all members first")
		after := w.readCluster()
		require.Equal(w, []any{before.Generation, before.Members}, []any{after.Generation, after.Members}, "nothing was changed")
		require.Equal(w, 4, after.Members[len(after.Members)-2].Format)

		w.expireLease(c)
		w.me = known(6)
		require.True(w, w.fenceMember(c))
		require.Equal(w, 6, written(w.me), "alone it need not think of others")
	}},
	{"members that join at once all live, one after the other", func(w *testEnv) {
		var joining sync.WaitGroup
		for n := range 4 {
			joining.Go(func() { w.joinMember(fmt.Sprint(n), time.Hour) })
		}
		joining.Wait()
		c := w.readCluster()
		require.Len(w, c.Members, 5)
		for i := range 4 {
			require.Greater(w, c.Members[i+1].JoinedAt, c.Members[i].JoinedAt)
		}
	}},
	{"a shard belongs to who claimed it first, until it is released", func(w *testEnv) {
		other := w.joinMember("other", time.Hour)
		require.Equal(w, []int{0, 5, 1023}, w.claimShards(w.me, 1023, 0, 5))
		require.Equal(w, []int{4, 6}, w.claimShards(other, 4, 5, 6))
		require.Equal(w, []int{0, 5}, w.claimShards(w.me, 0, 4, 5), "its own and no other")
		require.Empty(w, w.claimShards(w.me))
		require.NoError(w, w.Release(w.ctx(), other, transfersTo("", 5, 6, 7)), "what is not one's own is left alone")
		c := w.readCluster()
		require.Equal(w, []string{w.me, "", other, w.me, "", "", w.me},
			[]string{c.Owners[0], c.Owners[1], c.Owners[4], c.Owners[5], c.Owners[6], c.Owners[7],
				c.Owners[1023]})
		require.Equal(w, []int{6}, w.claimShards(w.me, 4, 6))
	}},
	{"a shard that is released for somebody is his from that moment on, if he lives", func(w *testEnv) {
		other, gone := w.joinMember("other", time.Hour), w.joinMember("gone", time.Hour)
		require.NoError(w, w.Leave(w.ctx(), gone))
		w.claimShards(w.me, 1, 2, 3, 4)
		given := append(transfersTo(other, 1, 2, 7), append(transfersTo(gone, 3), transfersTo("", 4)...)...)
		require.True(w, w.growsGeneration(func() { require.NoError(w, w.Release(w.ctx(), w.me, given)) }))
		require.Equal(w, []string{other, other, "", ""}, w.readCluster().Owners[1:5])
		require.Empty(w, w.readCluster().Owners[7], "what is not one's own is not given to anybody")
		require.False(w, w.growsGeneration(func() { require.NoError(w, w.Release(w.ctx(), w.me, given)) }), "it is given once")
		require.Equal(w, []int{3, 4}, w.claimShards(other, 3, 4), "nobody has what was for somebody who had gone")
		moves := requireList[persistence.Move](w)(w.Moves(w.ctx()))
		for i := range moves {
			moves[i].At = 0
		}
		require.Equal(w, []persistence.Move{{To: w.me, Shards: 4},
			{From: w.me, To: other, Shards: 2}, {From: w.me, To: other, Shards: 2}}, moves)
	}},
	{"what changes hands is told, by whom and to whom", func(w *testEnv) {
		other := w.joinMember("other", time.Hour)
		w.claimShards(w.me, 1, 2, 3, 4)
		w.claimShards(other, 5)
		require.NoError(w, w.Release(w.ctx(), w.me, transfersTo("", 1, 2, 3)))
		w.claimShards(w.me, 3) // the member takes back a shard without a receiver
		require.NoError(w, w.Release(w.ctx(), other, transfersTo("", 5)))
		third := w.joinMember("third", time.Hour)
		w.claimShards(third, 1, 2, 5, 6)
		require.NoError(w, w.Leave(w.ctx(), third))
		w.claimShards(other, 1, 4)
		old := w.joinMember("old", time.Hour)
		w.claimShards(old, 2)
		w.expireLease(old)
		w.fenceMember(old)
		w.claimShards(w.me, 2)
		var told []persistence.Move
		at := int64(0)
		for _, m := range requireList[persistence.Move](w)(w.Moves(w.ctx())) {
			require.GreaterOrEqual(w, m.At, at)
			at, m.At = m.At, 0
			told = append(told, m)
		}
		givers := []persistence.Move{{From: "", To: third, Shards: 1},
			{From: w.me, To: third, Shards: 2}, {From: other, To: third, Shards: 1}}
		require.Len(w, told, 8)
		require.Equal(w, []persistence.Move{{To: w.me, Shards: 4}, {To: other, Shards: 1}}, told[:2])
		require.ElementsMatch(w, givers, told[2:5])
		require.Equal(w, []persistence.Move{{From: third, To: other, Shards: 1},
			{From: third, To: old, Shards: 1}, {From: old, To: w.me, Shards: 1}}, told[5:])
	}},
	{"of two that claim at once one gets each shard", func(w *testEnv) {
		members := []string{w.me, w.joinMember("b", time.Hour), w.joinMember("c", time.Hour)}
		owned := make([][]int, len(members))
		var claiming sync.WaitGroup
		for i, m := range members {
			claiming.Go(func() {
				shards := persistence.AllShards()
				for part := range 8 { // each starts at a different shard
					from := (part + 3*i) % 8 * 128
					owned[i] = append(owned[i], w.claimShards(m, shards[from:from+128]...)...)
				}
			})
		}
		claiming.Wait()
		var owners [persistence.Shards]string
		for i, m := range members {
			for _, shard := range owned[i] {
				require.Empty(w, owners[shard])
				owners[shard] = m
			}
		}
		require.Equal(w, owners[:], w.readCluster().Owners)
		require.NotContains(w, owners[:], "")
	}},
	{"claims and releases against each other end", func(w *testEnv) {
		members := []string{w.me, w.joinMember("b", time.Hour)}
		var claiming sync.WaitGroup
		for i, m := range members {
			claiming.Go(func() {
				shards := persistence.AllShards()
				if i > 0 {
					slices.Reverse(shards)
				}
				for range 10 {
					require.NoError(w, w.Release(w.ctx(), m, transfersTo("", w.claimShards(m, shards...)...)))
				}
			})
		}
		claiming.Wait()
		require.Len(w, w.claimShards(w.me, persistence.AllShards()...), persistence.Shards)
	}},
	{"a lease that runs is not fenced", func(w *testEnv) {
		require.False(w, w.growsGeneration(func() { require.False(w, w.fenceMember(w.me)) }))
		w.mustCommit(createCommit("a"))
	}},
	{"a lease that ran out is fenced: its shards are free, and nothing of it lands", func(w *testEnv) {
		old := w.joinMember("old", time.Hour)
		w.mustCommit(createCommit("a"), createCommit("b"))
		w.claimShards(old, 1, 2, 3)
		w.expireLease(old)
		require.Equal(w, []int{1}, w.claimShards(old, 1), "until somebody fences it, it lives")
		require.True(w, w.fenceMember(old))
		require.Equal(w, "", w.readCluster().Owners[2])
		require.Equal(w, []int{1, 2, 3}, w.claimShards(w.me, 1, 2, 3))
		for _, batch := range [][]persistence.Commit{{appendCommit("a", 2)},
			{appendCommit("a", 2), appendCommit("b", 2)}, {appendCommit("a", 7)}} {
			_, err := w.Commit(w.ctx(), old, batch)
			require.ErrorIs(w, err, persistence.ErrFenced)
		}
		_, err := w.Renew(w.ctx(), old, time.Hour)
		require.ErrorIs(w, err, persistence.ErrFenced)
		_, err = w.Claim(w.ctx(), old, []int{9})
		require.ErrorIs(w, err, persistence.ErrFenced)
		require.NoError(w, w.Release(w.ctx(), old, transfersTo("", 1, 2, 3)))
		require.NoError(w, w.Leave(w.ctx(), old))
		c := w.readCluster()
		require.Equal(w, []string{w.me, w.me, w.me, ""}, []string{c.Owners[1], c.Owners[2], c.Owners[3], c.Owners[9]})
		require.Positive(w, c.Members[1].FencedAt, "it is still told of")
	}},
	{"fencing twice, or who was never there, does no harm", func(w *testEnv) {
		old := w.joinMember("old", time.Hour)
		w.expireLease(old)
		require.True(w, w.fenceMember(old))
		require.False(w, w.growsGeneration(func() {
			require.True(w, w.fenceMember(old))
			require.True(w, w.fenceMember("stranger"))
		}))
	}},
	{"a renewal comes before a fence or after it", func(w *testEnv) {
		for round := range 20 {
			old := w.joinMember(fmt.Sprint(round), 0)
			var ended bool
			var renewal error
			var both sync.WaitGroup
			both.Go(func() { ended = w.fenceMember(old) })
			both.Go(func() { _, renewal = w.Renew(w.ctx(), old, time.Hour) })
			both.Wait()
			if ended {
				// The renewal may have succeeded first if the lease had expired; a lease of an hour
				// had not.
				require.ErrorIs(w, renewal, persistence.ErrFenced)
			} else {
				require.NoError(w, renewal)
			}
		}
	}},
	{"who drains is told as such, and lives on with what it owns", func(w *testEnv) {
		require.Equal(w, []int{1, 2}, w.claimShards(w.me, 1, 2))
		require.False(w, w.readCluster().Members[0].Draining)
		require.True(w, w.growsGeneration(func() { require.NoError(w, w.Drain(w.ctx(), w.me, true)) }))
		require.False(w, w.growsGeneration(func() { require.NoError(w, w.Drain(w.ctx(), w.me, true)) }))
		c := w.readCluster()
		require.True(w, c.Members[0].Draining)
		require.Zero(w, c.Members[0].FencedAt)
		require.Equal(w, w.me, c.Owners[2])
		w.mustCommit(createCommit("a"))
		other := w.joinMember("other", time.Minute)
		require.False(w, w.readCluster().Members[1].Draining)
		require.True(w, w.growsGeneration(func() { require.NoError(w, w.Drain(w.ctx(), w.me, false)) }), "it stays")
		require.False(w, w.growsGeneration(func() { require.NoError(w, w.Drain(w.ctx(), w.me, false)) }))
		require.False(w, w.readCluster().Members[0].Draining)
		require.NoError(w, w.Leave(w.ctx(), other))
		require.False(w, w.growsGeneration(func() { require.ErrorIs(w, w.Drain(w.ctx(), other, true), persistence.ErrFenced) }))
		require.ErrorIs(w, w.Drain(w.ctx(), "stranger", true), persistence.ErrFenced)
	}},
	{"who leaves frees its shards, and only those", func(w *testEnv) {
		other := w.joinMember("other", time.Hour)
		w.claimShards(w.me, 1)
		w.claimShards(other, 2)
		require.NoError(w, w.Leave(w.ctx(), other))
		c := w.readCluster()
		require.Equal(w, []string{w.me, ""}, c.Owners[1:3])
		require.Positive(w, c.Members[1].FencedAt)
	}},
	{"the generation grows with each change, and with nothing else", func(w *testEnv) {
		var other string
		require.True(w, w.growsGeneration(func() { other = w.joinMember("other", time.Hour) }))
		require.True(w, w.growsGeneration(func() { w.claimShards(other, 1, 2) }))
		require.False(w, w.growsGeneration(func() { w.claimShards(other, 1, 2) }), "they are its own already")
		require.False(w, w.growsGeneration(func() { w.claimShards(w.me, 1) }), "it is somebody else's")
		require.False(w, w.growsGeneration(func() { require.NoError(w, w.Release(w.ctx(), w.me, transfersTo("", 1, 5))) }))
		require.True(w, w.growsGeneration(func() { require.NoError(w, w.Release(w.ctx(), other, transfersTo("", 1))) }))
		require.False(w, w.growsGeneration(func() { w.expireLease(other) }))
		require.True(w, w.growsGeneration(func() { w.fenceMember(other) }))
		other = w.joinMember("other", time.Hour)
		require.True(w, w.growsGeneration(func() { require.NoError(w, w.Leave(w.ctx(), other)) }))
		require.False(w, w.growsGeneration(func() { require.NoError(w, w.Leave(w.ctx(), other)) }))
		require.False(w, w.growsGeneration(func() { w.mustCommit(createCommit("a")) }))
	}},
}

// transfersTo returns transfers of shards to a member.
func transfersTo(member string, shards ...int) []persistence.Transfer {
	transfers := make([]persistence.Transfer, len(shards))
	for i, shard := range shards {
		transfers[i] = persistence.Transfer{Shard: shard, To: member}
	}
	return transfers
}
