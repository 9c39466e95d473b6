package cluster

import (
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Summary is what people are told of the members of a cluster.
type Summary struct {
	Generation int64
	Now        time.Time // by the store's clock
	Members    []MemberSummary
	Unowned    int // shards that nobody owns
}

// MemberSummary is one member of it.
type MemberSummary struct {
	persistence.MemberRow
	State  MemberState
	Lease  time.Duration // that is left; 0 = it has run out
	Shards int
}

// MemberState is the state of a member.
type MemberState string

// The states of a member.
const (
	Living   MemberState = "living"
	Draining MemberState = "draining" // it hands its shards over
	Overdue  MemberState = "overdue"  // its lease has run out, and it was not fenced yet
	Gone     MemberState = "gone"     // it has left or was fenced, not longer than ten minutes ago
)

// Summarize sums a view up.
func Summarize(v *View) Summary {
	counts := v.countShards()
	s := Summary{Generation: v.Generation, Now: v.Now, Unowned: counts[""]}
	for _, m := range v.Members {
		s.Members = append(s.Members, MemberSummary{
			MemberRow: m, State: memberState(v, m), Shards: counts[m.Incarnation],
			Lease: max(0, time.UnixMilli(m.Until).Sub(v.Now)),
		})
	}
	return s
}

// inState is how many members are in a state.
func (v *View) inState(wanted MemberState) (n int) {
	for _, m := range v.Members {
		if memberState(v, m) == wanted {
			n++
		}
	}
	return n
}

func memberState(v *View, m persistence.MemberRow) MemberState {
	switch {
	case m.FencedAt != 0:
		return Gone
	case isExpired(v, m):
		return Overdue
	case m.Draining:
		return Draining
	default:
		return Living
	}
}
