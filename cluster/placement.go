package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Self is who looks at a view.
type Self struct {
	Incarnation string
	TTL         time.Duration // of leases
	// Steady says that it has held its own lease for a full time to live without trouble. Then the
	// store was there, and whoever did not renew his lease in that time could have.
	Steady bool
}

// Steps are what a member does about a view.
type Steps struct {
	Fence []string // members whose lease has run out
	Claim []int    // shards that nobody owns and that are for it
	Hand  []int    // shards of its own to hand over, because others have room for them
	Again time.Duration
}

// When a member looks again: soon, as long as something is to happen, here or elsewhere.
const (
	unsettledInterval = 400 * time.Millisecond
	settledInterval   = 2 * time.Second
)

// lateLease is what is left of a lease that should have been renewed twice since: its end is waited
// for.
func lateLease(ttl time.Duration) time.Duration { return ttl * 3 / 5 }

// Decide says what a member does about a view. It is a pure function. Members that have different
// views decide differently; then the store gives a shard to one of them, and later views settle the
// rest.
//
// Every member that takes part has a share, the same for all: the number of shards by the number of
// members, rounded up. Nobody claims more than that, and who has more hands the rest over. So
// nothing moves but what a joiner gets or what somebody has left behind. Which one of those with
// room gets a shard is told by rendezvous hashing.
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

// overdueMembers are those to be fenced. Somebody who was where this member is now cannot live on
// beside it, so for him no steadiness is needed.
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

// isPredecessor reports whether somebody was where another member is now.
func isPredecessor(m, later persistence.MemberRow) bool {
	return m.Name == later.Name && m.URL == later.URL && m.JoinedAt < later.JoinedAt
}

// isExpired reports whether a lease has run out.
func isExpired(v *View, m persistence.MemberRow) bool { return m.Over(v.Now.UnixMilli()) }

// shardPlacement is a view from which it is told who is to own what.
type shardPlacement struct {
	view        *View
	takers      []shardTaker
	share       int
	counts      map[string]int // shards of each owner, those included that are for it
	hasUnowned  bool           // somebody has to claim something
	allDraining bool           // nobody stays
}

type shardTaker struct {
	persistence.MemberRow
	hash uint64
}

func newPlacement(v *View) *shardPlacement {
	p := &shardPlacement{view: v, counts: v.countShards()}
	living := v.Living()
	staying := slices.DeleteFunc(slices.Clone(living), func(m persistence.MemberRow) bool { return m.Draining })
	if p.allDraining = len(staying) == 0; p.allDraining { // until they are gone, somebody has to do it
		staying = living
	}
	for _, m := range staying {
		p.takers = append(p.takers, shardTaker{m, hashName(m.Incarnation)})
	}
	p.share = (persistence.Shards + len(p.takers) - 1) / len(p.takers)
	return p
}

// claimableShards goes through what nobody owns, and says what of it is for a member. What is for
// one whose lease has run out waits until that one is fenced, or renews.
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

// preferredOwner is who gets a shard: of those with room the one whose hash with it is the largest.
// For a shard that nobody owns there always is one: the shares of all are no less than all shards.
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

// planTransfers says who is to have what a member hands over: whoever would claim it, if his lease
// runs, so that he need not. Nobody gets what none of them has room for.
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

// surplusShards is what a member has beyond its share, as far as others have room for it and a
// lease that runs. It keeps what rendezvous hashing would rather give to it.
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

// shareOf is 0 for who goes.
func (p *shardPlacement) shareOf(member string) int {
	if slices.ContainsFunc(p.takers, func(t shardTaker) bool { return t.Incarnation == member }) {
		return p.share
	}
	return 0
}

// freeCapacity is how many more shards the others take who can.
func (p *shardPlacement) freeCapacity(me string) int {
	room := 0
	for _, t := range p.takers {
		if t.Incarnation != me && !isExpired(p.view, t.MemberRow) {
			room += max(0, p.share-p.counts[t.Incarnation])
		}
	}
	return room
}

// nextLook is when to look again if nothing is heard until then.
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

// hashName is FNV-1a, which is skewed for names that resemble each other, so it is mixed before it
// is compared.
func hashName(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return mixBits(h)
}

// mixBits is the end of splitmix64.
func mixBits(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
