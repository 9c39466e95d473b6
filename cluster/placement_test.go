package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

const ttl = 2 * time.Second

// table is a store of members and shards in memory.
type table struct{ persistence.Cluster }

func newTable() *table {
	return &table{persistence.Cluster{Now: 1_000_000, Owners: make([]string, persistence.Shards)}}
}

func (c *table) join(names ...string) {
	for _, name := range names {
		c.Members = append(c.Members, persistence.MemberRow{
			Incarnation: name, Name: name, JoinedAt: int64(len(c.Members) + 1), Until: c.Now + ttl.Milliseconds(),
		})
		c.Generation++
	}
}

func (c *table) row(name string) *persistence.MemberRow {
	i := slices.IndexFunc(c.Members, func(m persistence.MemberRow) bool { return m.Incarnation == name })
	return &c.Members[i]
}

func (c *table) fence(name string) {
	c.row(name).FencedAt = c.Now
	for i, owner := range c.Owners {
		if owner == name {
			c.Owners[i] = ""
		}
	}
	c.Generation++
}

func (c *table) give(name string, shards ...int) {
	for _, shard := range shards {
		c.Owners[shard] = name
	}
	c.Generation++
}

func (c *table) view() *View {
	v := c.Cluster
	v.Members, v.Owners = slices.Clone(c.Members), slices.Clone(c.Owners)
	return NewView(&v)
}

// do carries out a member's steps for a view, as far as the store permits.
func (c *table) do(me string, v *View) {
	s := Decide(v, Self{me, ttl, true})
	for _, name := range s.Fence {
		c.fence(name)
	}
	for _, shard := range s.Claim {
		if c.Owners[shard] == "" {
			c.give(me, shard)
		}
	}
	for _, given := range planTransfers(v, me, s.Hand) {
		if c.Owners[given.Shard] != me {
			continue
		}
		if c.give("", given.Shard); c.view().Lives(given.To) {
			c.give(given.To, given.Shard)
		}
	}
}

// settle lets the members act in random order until there is nothing left to do. Each uses a view
// that may be up to stale steps old.
func (c *table) settle(t require.TestingT, rng *rand.Rand, stale int) (moves int) {
	views := []*View{c.view()}
	for !c.settled() {
		require.Less(t, len(views), 10_000, "it does not settle")
		me := c.Members[rng.IntN(len(c.Members))].Incarnation
		before := slices.Clone(c.Owners)
		c.do(me, views[max(0, len(views)-1-rng.IntN(stale+1))])
		for shard, owner := range c.Owners {
			if owner != before[shard] && owner != "" {
				moves++
			}
		}
		views = append(views, c.view())
	}
	return moves
}

func (c *table) settled() bool {
	v := c.view()
	return !slices.ContainsFunc(c.Members, func(m persistence.MemberRow) bool {
		s := Decide(v, Self{m.Incarnation, ttl, true})
		return len(s.Fence)+len(s.Claim)+len(s.Hand) > 0
	})
}

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("troupe-%d", i))
	}
	return all
}

func TestEveryMemberOwnsItsShare(t *testing.T) {
	for n := 1; n <= 10; n++ {
		for seed := range uint64(5) {
			rng, c := rand.New(rand.NewPCG(seed, 0)), newTable()
			for _, name := range names(n) { // one after the other
				c.join(name)
				c.settle(t, rng, 0)
			}
			for _, name := range names(n) {
				owned := len(c.view().Shards(name))
				require.InDelta(t, float64(persistence.Shards)/float64(n), owned, float64(n), "of %d, seed %d", n, seed)
			}
		}
	}
}

func TestAJoinMovesOnlyTheShardsOfTheJoiner(t *testing.T) {
	for n := 1; n < 10; n++ {
		rng, c := rand.New(rand.NewPCG(uint64(n), 0)), newTable()
		c.join(names(n)...)
		c.settle(t, rng, 0)
		before := slices.Clone(c.Owners)
		c.join("joiner")
		moves := c.settle(t, rng, 0)
		require.Len(t, c.view().Shards("joiner"), moves, "of %d", n)
		require.InDelta(t, persistence.Shards/(n+1), moves, float64(n+1), "of %d", n)
		for shard, owner := range c.Owners {
			if owner != "joiner" {
				require.Equal(t, before[shard], owner)
			}
		}
	}
}

func TestOnlyShardsOfMembersThatAreGoneMove(t *testing.T) {
	for n := 2; n <= 10; n++ {
		for how, end := range map[string]func(c *table){
			"fenced":   func(c *table) { c.row("troupe-0").Until = c.Now },
			"draining": func(c *table) { c.row("troupe-0").Draining = true },
		} {
			rng, c := rand.New(rand.NewPCG(uint64(n), 0)), newTable()
			c.join(names(n)...)
			c.settle(t, rng, 0)
			before := c.view()
			end(c)
			moves := c.settle(t, rng, 0)
			require.Len(t, before.Shards("troupe-0"), moves, "%s, of %d", how, n)
			require.Empty(t, c.view().Shards("troupe-0"))
			for shard, owner := range c.Owners {
				require.NotEmpty(t, owner)
				if before.Owners[shard] != "troupe-0" {
					require.Equal(t, before.Owners[shard], owner, "%s, of %d", how, n)
				}
			}
		}
	}
}

// However old the members' views are, they settle, with every shard owned and no member above its
// share.
func TestStaleViewsSettle(t *testing.T) {
	for seed := range uint64(50) {
		rng, c := rand.New(rand.NewPCG(seed, 1)), newTable()
		c.join(names(1 + rng.IntN(4))...)
		for range 4 {
			switch living := c.view().Living(); {
			case rng.IntN(2) == 0 || len(living) == 1:
				c.join(fmt.Sprintf("joiner-%d", len(c.Members)))
			case rng.IntN(2) == 0:
				c.row(living[rng.IntN(len(living))].Incarnation).Draining = true
			default:
				c.fence(living[rng.IntN(len(living))].Incarnation)
			}
			c.settle(t, rng, rng.IntN(4))
			counts, p := c.view().countShards(), newPlacement(c.view())
			require.Zero(t, counts[""], "seed %d", seed)
			for owner, count := range counts {
				require.LessOrEqual(t, count, p.shareOf(owner), "seed %d: %s", seed, owner)
			}
		}
	}
}

func TestShardsAreSpreadOverMembersWithSimilarNames(t *testing.T) {
	// One of ten members dies: its shards spread evenly over all others, by the hash.
	c := newTable()
	c.join(names(10)...)
	rng := rand.New(rand.NewPCG(1, 1))
	c.settle(t, rng, 0)
	before := c.view()
	c.fence("troupe-3")
	c.settle(t, rng, 0)
	gained := map[string]int{}
	for _, shard := range before.Shards("troupe-3") {
		gained[c.Owners[shard]]++
	}
	require.Len(t, gained, 9)
	for name, count := range gained {
		require.LessOrEqual(t, count, 15, name)
	}
}

func TestDecideReturnsTheStepsForAView(t *testing.T) {
	steady, shaky := Self{"a", ttl, true}, Self{"a", ttl, false}
	all := persistence.AllShards()
	for name, tt := range map[string]struct {
		self  Self
		build func(c *table)
		want  Steps
	}{
		"alone it takes everything, at once": {shaky, func(c *table) { c.join("a") },
			Steps{Claim: all, Again: unsettledInterval}},
		"alone with everything it rests": {steady, func(c *table) { c.join("a"); c.give("a", all...) },
			Steps{Again: settledInterval}},
		"a stranger to the store does nothing": {steady, func(c *table) { c.join("b"); c.give("b", all...) }, Steps{}},
		"one that was fenced does nothing":     {steady, func(c *table) { c.join("a", "b"); c.fence("a") }, Steps{}},
		"a lease that has run out is ended": {steady, func(c *table) { c.join("a", "b"); c.give("b", all...); c.row("b").Until = c.Now },
			Steps{Fence: []string{"b"}, Again: unsettledInterval}},
		"not by one that is not steady": {shaky, func(c *table) { c.join("a", "b"); c.give("b", all...); c.row("b").Until = c.Now },
			Steps{Again: unsettledInterval}},
		"but by who comes after him in the same place": {shaky, func(c *table) {
			c.join("b", "a")
			c.give("b", all...)
			c.row("b").Until, c.row("b").Name = c.Now, "a"
		}, Steps{Fence: []string{"b"}, Again: unsettledInterval}},
		"who was there first is not his successor's": {shaky, func(c *table) {
			c.join("a", "b")
			c.give("a", all[:512]...)
			c.give("b", all[512:]...)
			c.row("b").Until, c.row("b").Name = c.Now, "a"
		}, Steps{Again: unsettledInterval}},
		"a lease that was not renewed is looked at when it ends": {steady, func(c *table) {
			c.join("a", "b")
			c.give("a", all[:512]...)
			c.give("b", all[512:]...)
			c.row("b").Until = c.Now + 300
		}, Steps{Again: 301 * time.Millisecond}},
		"one that is late once is no reason": {steady, func(c *table) {
			c.join("a", "b")
			c.give("a", all[:512]...)
			c.give("b", all[512:]...)
			c.row("b").Until = c.Now + 1300
		}, Steps{Again: settledInterval}},
		"nothing is handed to a lease that has run out": {shaky, func(c *table) {
			c.join("a", "b")
			c.give("a", all...)
			c.row("b").Until = c.Now
		}, Steps{Again: unsettledInterval}},
		"what somebody is to give away is waited for": {steady, func(c *table) { c.join("b", "a"); c.give("b", all...) },
			Steps{Again: unsettledInterval}},
		"the last one that goes keeps all": {steady, func(c *table) { c.join("a"); c.give("a", all...); c.row("a").Draining = true },
			Steps{Again: settledInterval}},
		"who goes gives everything away": {steady, func(c *table) {
			c.join("a", "b")
			c.give("a", 3, 5)
			c.give("b", slices.DeleteFunc(slices.Clone(all), func(s int) bool { return s == 3 || s == 5 })...)
			c.row("a").Draining = true
		}, Steps{Hand: []int{3, 5}, Again: unsettledInterval}},
		"who goes claims nothing": {steady, func(c *table) {
			c.join("a",
				"b")
			c.row("a").Draining = true
		}, Steps{Again: unsettledInterval}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTable()
			tt.build(c)
			require.Equal(t, tt.want, Decide(c.view(), tt.self))
		})
	}
}

func TestShardsGoToTheMemberThatWouldClaimThem(t *testing.T) {
	c := newTable()
	c.join(names(4)...)
	c.settle(t, rand.New(rand.NewPCG(1, 1)), 0)
	c.row("troupe-0").Draining = true
	own := c.view().Shards("troupe-0")
	given := planTransfers(c.view(), "troupe-0", own[:40])
	for _, one := range given {
		c.give("", one.Shard)
	}
	for _, name := range names(4)[1:] {
		var his []int
		for _, one := range given {
			if one.To == name {
				his = append(his, one.Shard)
			}
		}
		require.NotEmpty(t, his)
		require.Equal(t, his, Decide(c.view(), Self{name, ttl, true}).Claim, name)
	}
}

func TestShardsGoOnlyToMembersWithRoomAndARunningLease(t *testing.T) {
	c := newTable()
	c.join("a", "b", "c")
	c.give("a", persistence.AllShards()...)
	c.row("b").Until = c.Now
	counts := map[string]int{}
	for _, one := range planTransfers(c.view(), "a", persistence.AllShards()) {
		counts[one.To]++
	}
	require.Equal(t, map[string]int{"c": 342, "": 682}, counts)
}

func TestTheOwnerOfATask(t *testing.T) {
	c := newTable()
	c.join("a", "b")
	c.give("a", persistence.ShardOf("x"))
	c.give("b", persistence.ShardOf("y"))
	v := c.view()
	owner, ok := v.OwnerOf("x")
	require.True(t, ok)
	require.Equal(t, "a", owner.Name)
	_, ok = v.OwnerOf("nobody's")
	require.False(t, ok)
	// A view does not change.
	c.fence("b")
	owner, ok = v.OwnerOf("y")
	require.True(t, ok)
	require.Equal(t, "b", owner.Name)
	_, ok = c.view().OwnerOf("y")
	require.False(t, ok)
	require.False(t, c.view().Lives("b"))
	require.Zero(t, noView().Generation)
	_, ok = noView().OwnerOf("x")
	require.False(t, ok)
}

func TestAClusterIsWholeWhenNothingWaitsForTheEndOfALease(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*table)
		whole  bool
	}{
		"settled":                          {func(*table) {}, true},
		"nobody owns a shard":              {func(c *table) { c.give("", 7) }, false},
		"the owner of a shard was fenced":  {func(c *table) { c.row("b").FencedAt = c.Now }, false},
		"a lease has run out":              {func(c *table) { c.row("b").Until = c.Now }, false},
		"who was here before has not gone": {func(c *table) { c.row("a").Name = "b" }, false},
		"who was here before has gone": {func(c *table) {
			c.row("a").Name = "b"
			c.fence(
				"a")
			c.give("b", c.view().unowned()...)
		}, true},
		"this member is not there any more": {func(c *table) { c.fence("b"); c.give("a", c.view().unowned()...) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTable()
			c.join("a", "b")
			for shard := range c.Owners {
				c.give([]string{"a", "b"}[shard%2], shard)
			}
			tt.change(c)
			require.Equal(t, tt.whole, c.view().Whole("b"))
		})
	}
}

// unowned returns the shards without an owner.
func (v *View) unowned() (shards []int) {
	for shard := range v.Owners {
		if v.Owner(shard) == "" {
			shards = append(shards, shard)
		}
	}
	return shards
}
