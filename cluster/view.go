package cluster

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// View is the membership and shard ownership at one moment. It never changes; later states are new
// views.
type View struct {
	Generation int64     // generation in the store; grows with every change
	Now        time.Time // time of the store's clock at the read
	// members in order of joining, including recently departed ones
	Members []persistence.MemberRow
	Owners  []string // owning incarnation of each shard; "" means none

	members map[string]persistence.MemberRow // by incarnation
}

// NewView returns the view of a stored cluster.
func NewView(c *persistence.Cluster) *View {
	v := &View{Generation: c.Generation, Now: time.UnixMilli(c.Now), Members: c.Members, Owners: c.Owners}
	v.members = make(map[string]persistence.MemberRow, len(c.Members))
	for _, m := range c.Members {
		v.members[m.Incarnation] = m
	}
	return v
}

// noView returns the empty view before the first read.
func noView() *View { return NewView(&persistence.Cluster{Owners: make([]string, persistence.Shards)}) }

// Member returns a member. It returns false if the member is unknown or has been gone for long.
func (v *View) Member(incarnation string) (persistence.MemberRow, bool) {
	m, ok := v.members[incarnation]
	return m, ok
}

// Lives reports whether an incarnation has neither left nor been fenced. Its lease may have
// expired.
func (v *View) Lives(incarnation string) bool {
	m, ok := v.members[incarnation]
	return ok && m.FencedAt == 0
}

// Living returns the live members, in order of joining.
func (v *View) Living() []persistence.MemberRow {
	var living []persistence.MemberRow
	for _, m := range v.Members {
		if m.FencedAt == 0 {
			living = append(living, m)
		}
	}
	return living
}

// Owner returns the owner of a shard; "" means none.
func (v *View) Owner(shard int) string {
	if owner := v.Owners[shard]; v.Lives(owner) {
		return owner
	}
	return ""
}

// OwnerOf returns the owner of a task. It returns false if the task has no owner at the moment.
func (v *View) OwnerOf(task string) (persistence.MemberRow, bool) {
	return v.Member(v.Owner(persistence.ShardOf(task)))
}

// Whole reports whether no end of a lease is awaited, from the point of view of a member. Each
// shard then has an owner with a running lease, and every predecessor of the member is gone.
func (v *View) Whole(me string) bool {
	self, _ := v.Member(me)
	if !v.Lives(me) || v.countShards()[""] > 0 {
		return false
	}
	return !slices.ContainsFunc(v.Living(), func(m persistence.MemberRow) bool { return isExpired(v, m) || isPredecessor(m, self) })
}

// Shards returns the shards of an incarnation, in order.
func (v *View) Shards(incarnation string) []int {
	var shards []int
	for shard, owner := range v.Owners {
		if owner == incarnation {
			shards = append(shards, shard)
		}
	}
	return shards
}

// countShards returns the number of shards of each owner, with "" for shards without an owner.
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
