package cluster

import (
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Summary is the state of a cluster for display.
type Summary struct {
	Generation int64
	Now        time.Time // time of the store's clock
	Members    []MemberSummary
	Unowned    int // shards without an owner
}

// MemberSummary is the state of one member.
type MemberSummary struct {
	persistence.MemberRow
	State  MemberState
	Lease  time.Duration // remaining time of the lease; 0 means expired
	Shards int
}

// MemberState is the state of a member.
type MemberState string

// The states of a member.
const (
	Alive    MemberState = "alive"
	Draining MemberState = "draining" // the member is handing its shards over
	Overdue  MemberState = "overdue"  // the lease has expired, and the member is not fenced yet
	Gone     MemberState = "gone"     // the member left or was fenced within the last ten minutes
)

// Summarize returns the summary of a view.
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

// inState returns the number of members in a state.
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
		return Alive
	}
}
