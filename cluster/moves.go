package cluster

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Move says that shards changed hands, as one member saw it. What changes hands in portions is one move.
type Move struct {
	At       time.Time // by the store's clock, of its beginning
	From, To string    // incarnations; From "" = nobody had them since this member began to look
	Shards   int
}

// moves are those of the last minutes.
type moves struct {
	mu    sync.Mutex
	owner [persistence.Shards]string // who had each shard last
	all   []Move                     // in order of time
}

const (
	movesKept  = persistence.Remembered
	mostMoves  = 1000
	oneMovesIn = 5 * time.Second
)

// add takes a view that follows the ones before. What was there when this member began to look did not move.
func (m *moves) add(v *View, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[Move]int{}
	for shard, owner := range v.Owners {
		if owner == "" || owner == m.owner[shard] {
			continue
		}
		if !first {
			counts[Move{From: m.owner[shard], To: owner}]++
		}
		m.owner[shard] = owner
	}
	for move, n := range counts {
		m.note(Move{v.Now, move.From, move.To, n})
	}
	slices.SortStableFunc(m.all, func(a, b Move) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	old := v.Now.Add(-movesKept)
	m.all = slices.DeleteFunc(m.all, func(move Move) bool { return move.At.Before(old) })
	m.all = slices.Delete(m.all, 0, max(0, len(m.all)-mostMoves))
}

func (m *moves) note(move Move) {
	for i := range m.all {
		same := m.all[i].From == move.From && m.all[i].To == move.To
		if same && move.At.Sub(m.all[i].At) < oneMovesIn {
			m.all[i].Shards += move.Shards
			return
		}
	}
	m.all = append(m.all, move)
}

func (m *moves) list() []Move {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}
