package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Self is the member for which Decide computes steps.
type Self struct {
	Incarnation string
	TTL         time.Duration // TTL of leases
	// Steady reports whether the member has held its lease for a full TTL without trouble. Then
	// every other live member could have renewed its lease, too.
	Steady bool
}

// Steps are the actions of a member on a view.
type Steps struct {
	Fence []string // members with expired leases to fence
	Claim []int    // shards without an owner to claim
	Hand  []int    // own shards to hand over, because other members have room
	Again time.Duration
}

// These are the intervals between reads of the store, which are short while a change is expected.
const (
	unsettledInterval = 400 * time.Millisecond
	settledInterval   = 2 * time.Second
)

// lateLease returns the remaining time of a lease that has missed two renewals. A member then
// expects the end of the lease.
func lateLease(ttl time.Duration) time.Duration { return ttl * 3 / 5 }

// Decide returns the steps of a member for a view. It is a pure function. Members with different
// views may decide differently. Then the store gives a shard to one of them, and later views settle
// the rest.
//
// Every participating member has the same share: the number of shards divided by the number of
// members, rounded up. No member claims more than its share, and a member with more hands over the
// surplus. So shards move only to a joiner, or from a member that is gone. Rendezvous hashing
// selects the member that gets a shard.
func Decide(v *View, self Self) Steps {
	if !v.Lives(self.Incarnation) {
		return Steps{}
	}
	p := newPlacement(v)
	s := Steps{Fence: overdueMembers(v, self)}
	s.Claim = p.claimableShards(self.Incarnation)
	s.Hand = p.surplusShards(self.Incarnation)
	s.Again = p.nextLook(self)
	return s
}

// overdueMembers returns the members to fence. An earlier incarnation of this member cannot be
// alive, so it is fenced even if this member is not steady.
func overdueMembers(v *View, self Self) []string {
	me, _ := v.Member(self.Incarnation)
	var found []string
	for _, m := range v.Living() {
		if m.Incarnation != self.Incarnation && isExpired(v, m) && (self.Steady || isPredecessor(m, me)) {
			found = append(found, m.Incarnation)
		}
	}
	return found
}

// isPredecessor reports whether m is an earlier incarnation with the same name and URL.
func isPredecessor(m, later persistence.MemberRow) bool {
	return m.Name == later.Name && m.URL == later.URL && m.JoinedAt < later.JoinedAt
}

// isExpired reports whether a lease has expired.
func isExpired(v *View, m persistence.MemberRow) bool { return m.Over(v.Now.UnixMilli()) }

// shardPlacement computes the future owners of shards from a view.
type shardPlacement struct {
	view        *View
	takers      []shardTaker
	share       int
	counts      map[string]int // number of shards of each owner, including shards meant for it
	hasUnowned  bool           // some shards must be claimed
	allDraining bool           // every member is draining
}

type shardTaker struct {
	persistence.MemberRow
	hash uint64
}

func newPlacement(v *View) *shardPlacement {
	p := &shardPlacement{view: v, counts: v.countShards()}
	living := v.Living()
	staying := slices.DeleteFunc(slices.Clone(living), func(m persistence.MemberRow) bool { return m.Draining })
	// draining members must serve all shards until they have left
	if p.allDraining = len(staying) == 0; p.allDraining {
		staying = living
	}
	for _, m := range staying {
		p.takers = append(p.takers, shardTaker{m, hashName(m.Incarnation)})
	}
	p.share = (persistence.Shards + len(p.takers) - 1) / len(p.takers)
	return p
}

// claimableShards returns the shards without an owner that are meant for a member. Shards meant for
// a member with an expired lease wait until that member is fenced or renews.
func (p *shardPlacement) claimableShards(me string) []int {
	p.hasUnowned = p.counts[""] > 0
	if !p.hasUnowned {
		return nil
	}
	var mine []int
	for shard := range p.view.Owners {
		if p.view.Owner(shard) != "" {
			continue
		}
		to := p.preferredOwner(shard)
		p.counts[to]++
		if to == me {
			mine = append(mine, shard)
		}
	}
	return mine
}

// preferredOwner returns the member that should get a shard: the one with the largest hash among
// those with room. For a shard without an owner there is always one, because the shares cover all
// shards.
func (p *shardPlacement) preferredOwner(shard int) string {
	var best string
	var most uint64
	for _, t := range p.takers {
		if p.counts[t.Incarnation] >= p.share {
			continue
		}
		if score := mixBits(t.hash ^ mixBits(uint64(shard))); best == "" || score > most {
			best, most = t.Incarnation, score
		}
	}
	return best
}

// planTransfers returns the receivers of shards that a member hands over. The receiver is the
// member that would claim the shard, if its lease runs. If no member has room, the shard gets no
// owner.
func planTransfers(v *View, me string, shards []int) []persistence.Transfer {
	p := newPlacement(v)
	p.takers = slices.DeleteFunc(p.takers, func(t shardTaker) bool { return t.Incarnation == me || isExpired(v, t.MemberRow) })
	given := make([]persistence.Transfer, len(shards))
	for i, shard := range shards {
		to := p.preferredOwner(shard)
		p.counts[to]++
		given[i] = persistence.Transfer{Shard: shard, To: to}
	}
	return given
}

// surplusShards returns the shards of a member above its share, up to the room of other members. It
// keeps the shards with the largest hashes.
func (p *shardPlacement) surplusShards(me string) []int {
	beyond := p.counts[me] - p.shareOf(me)
	beyond = min(beyond, p.freeCapacity(me))
	if beyond <= 0 {
		return nil
	}
	own, h := p.view.Shards(me), hashName(me)
	slices.SortFunc(own, func(a, b int) int { return cmp.Compare(mixBits(h^mixBits(uint64(a))), mixBits(h^mixBits(uint64(b)))) })
	given := own[:min(beyond, len(own))]
	slices.Sort(given)
	return given
}

// shareOf returns the share of a member; 0 if the member is leaving.
func (p *shardPlacement) shareOf(member string) int {
	if slices.ContainsFunc(p.takers, func(t shardTaker) bool { return t.Incarnation == member }) {
		return p.share
	}
	return 0
}

// freeCapacity returns how many more shards other members with running leases can take.
func (p *shardPlacement) freeCapacity(me string) int {
	room := 0
	for _, t := range p.takers {
		if t.Incarnation != me && !isExpired(p.view, t.MemberRow) {
			room += max(0, p.share-p.counts[t.Incarnation])
		}
	}
	return room
}

// nextLook returns the time until the next read of the store without a hint.
func (p *shardPlacement) nextLook(self Self) time.Duration {
	wait := settledInterval
	if p.hasUnowned {
		wait = unsettledInterval
	}
	for _, m := range p.view.Living() {
		left := time.UnixMilli(m.Until).Sub(p.view.Now)
		switch {
		case p.counts[m.Incarnation] > p.shareOf(m.Incarnation):
			wait = min(wait, unsettledInterval)
		case m.Incarnation == self.Incarnation:
		case left <= 0:
			wait = min(wait, unsettledInterval)
		case left < lateLease(self.TTL):
			wait = min(wait, left+time.Millisecond)
		}
	}
	return wait
}

// hashName returns the FNV-1a hash of a name, with mixed bits because FNV-1a is skewed for similar
// names.
func hashName(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return mixBits(h)
}

// mixBits returns h after the last steps of splitmix64.
func mixBits(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
