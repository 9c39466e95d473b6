package cluster

import (
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Move says that shards changed hands. What changes hands in portions is one move.
type Move struct {
	At       time.Time // by the store's clock, of its beginning
	From, To string    // incarnations; From "" = nobody had them before
	Shards   int
}

const (
	mostMoves  = 1000
	oneMovesIn = 5 * time.Second
)

// Moves are what the store tells has moved, put together, in order of time; no more than the last
// 1,000.
func Moves(portions []persistence.Move) []Move {
	type way struct{ from, to string }
	var all []Move
	last := map[way]int{} // in all
	for _, p := range portions {
		at, on := time.UnixMilli(p.At), way{p.From, p.To}
		if i, known := last[on]; known && at.Sub(all[i].At) < oneMovesIn {
			all[i].Shards += p.Shards
			continue
		}
		last[on] = len(all)
		all = append(all, Move{at, p.From, p.To, p.Shards})
	}
	return all[max(0, len(all)-mostMoves):]
}
