package cluster

import (
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Move is a change of the owner of shards. A handover in several portions is one move.
type Move struct {
	At       time.Time // start time by the store's clock
	From, To string    // incarnations; From is "" if the shards had no owner
	Shards   int
}

const (
	mostMoves  = 1000
	oneMovesIn = 5 * time.Second
)

// Moves combines stored portions into moves, in order of time. It returns at most the last 1,000.
func Moves(portions []persistence.Move) []Move {
	type way struct{ from, to string }
	var all []Move
	last := map[way]int{} // index in all
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
