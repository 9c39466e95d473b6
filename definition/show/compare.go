package show

import "github.com/troupe-engine/troupe/flow"

// Pair is a visit of a node in two tasks.
type Pair struct {
	One, Other *flow.Visit // nil if the node was not visited in that task
	Differs    []Difference
}

// Difference names a property that differs.
type Difference string

// The differences between two visits. Durations are not compared, because they always differ.
const (
	DiffersState    Difference = "state"
	DiffersAction   Difference = "action"
	DiffersError    Difference = "error"
	DiffersAttempts Difference = "attempts"
	DiffersUnits    Difference = "units"
	DiffersOutput   Difference = "output"
)

// Compare pairs the visits of two tasks by scope, node and visit, in the order of the first task. A
// visit that only the second task has comes after the visit that precedes it in the second task.
func Compare(one, other []flow.Visit) []Pair {
	there := make(map[flow.Address]*flow.Visit, len(other))
	known := make(map[flow.Address]bool, len(one))
	for i := range one {
		known[one[i].Address] = true
	}
	// the zero address is before all others
	behind, last := map[flow.Address][]Pair{}, flow.Address{}
	for i := range other {
		v := &other[i]
		if there[v.Address] = v; known[v.Address] {
			last = v.Address
			continue
		}
		behind[last] = append(behind[last], Pair{Other: v})
	}
	pairs := behind[flow.Address{}]
	for i := range one {
		v := &one[i]
		pairs = append(pairs, comparePair(v, there[v.Address]))
		pairs = append(pairs, behind[v.Address]...)
	}
	return pairs
}

func comparePair(one, other *flow.Visit) Pair {
	p := Pair{One: one, Other: other}
	if other == nil {
		return p
	}
	for _, d := range []struct {
		is Difference
		so bool
	}{
		{DiffersState, one.Status != other.Status},
		{DiffersAction, one.Action != other.Action},
		{DiffersError, one.Error != other.Error || one.Reason != other.Reason},
		{DiffersAttempts, one.Attempts != other.Attempts},
		{DiffersUnits, one.Units != other.Units},
		{DiffersOutput, one.Output != other.Output},
	} {
		if d.so {
			p.Differs = append(p.Differs, d.is)
		}
	}
	return p
}

// Same reports whether both tasks have the visit, without differences.
func (p *Pair) Same() bool { return p.One != nil && p.Other != nil && len(p.Differs) == 0 }
