package cluster

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// View is who is there and who owns what, as of one moment. It does not change: later there is
// another one.
type View struct {
	Generation int64                   // of the store; grows with every change
	Now        time.Time               // by the store's clock, when it was read
	Members    []persistence.MemberRow // in order of joining; those who have gone not long ago, too
	Owners     []string                // an incarnation for each shard; "" = nobody

	members map[string]persistence.MemberRow // by incarnation
}

// NewView is what the store told.
func NewView(c *persistence.Cluster) *View {
	v := &View{Generation: c.Generation, Now: time.UnixMilli(c.Now), Members: c.Members, Owners: c.Owners}
	v.members = make(map[string]persistence.MemberRow, len(c.Members))
	for _, m := range c.Members {
		v.members[m.Incarnation] = m
	}
	return v
}

// noView is what is known before the store was asked.
func noView() *View { return NewView(&persistence.Cluster{Owners: make([]string, persistence.Shards)}) }

// Member is one of the members; false if nobody has heard of it, or it has been gone for long.
func (v *View) Member(incarnation string) (persistence.MemberRow, bool) {
	m, ok := v.members[incarnation]
	return m, ok
}

// Lives reports whether an incarnation has neither left nor been fenced. Its lease may have run
// out.
func (v *View) Lives(incarnation string) bool {
	m, ok := v.members[incarnation]
	return ok && m.FencedAt == 0
}

// Living are the members that live, in order of joining.
func (v *View) Living() []persistence.MemberRow {
	var living []persistence.MemberRow
	for _, m := range v.Members {
		if m.FencedAt == 0 {
			living = append(living, m)
		}
	}
	return living
}

// Owner is who owns a shard; "" = nobody does.
func (v *View) Owner(shard int) string {
	if owner := v.Owners[shard]; v.Lives(owner) {
		return owner
	}
	return ""
}

// OwnerOf is who owns a task; false = nobody does, for now.
func (v *View) OwnerOf(task string) (persistence.MemberRow, bool) {
	return v.Member(v.Owner(persistence.ShardOf(task)))
}

// Whole reports whether nothing waits for the end of a lease, as a member sees it: each shard is
// owned by somebody whose lease runs, and whoever was where this member is now has gone.
func (v *View) Whole(me string) bool {
	self, _ := v.Member(me)
	if !v.Lives(me) || v.countShards()[""] > 0 {
		return false
	}
	return !slices.ContainsFunc(v.Living(), func(m persistence.MemberRow) bool { return isExpired(v, m) || isPredecessor(m, self) })
}

// Shards are those that an incarnation owns, in order.
func (v *View) Shards(incarnation string) []int {
	var shards []int
	for shard, owner := range v.Owners {
		if owner == incarnation {
			shards = append(shards, shard)
		}
	}
	return shards
}

// countShards tells how many shards each owner has, "" those that nobody has.
func (v *View) countShards() map[string]int {
	counts := map[string]int{}
	for _, owner := range v.Owners {
		counts[owner]++
	}
	for owner, n := range counts {
		if owner != "" && !v.Lives(owner) {
			counts[""] += n
			delete(counts, owner)
		}
	}
	return counts
}
