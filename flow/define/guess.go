package define

import (
	"cmp"

	"github.com/troupe-engine/troupe/flow"
)

// Guess is the question whether another name was meant, or "". It looks for one when it is printed,
// so it costs nothing as a part of a problem that is not told.
type Guess struct {
	Word      string
	Names     func() []string
	Otherwise string // what is asked when no name is near; "" = nothing
}

func (g Guess) String() string { return didYouMean(cmp.Or(g.Nearest(), g.Otherwise)) }

// Nearest is that name, or "".
func (g Guess) Nearest() string { return flow.Nearest(g.Word, g.Names()) }

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return ": did you mean " + shortenName(name) + "?"
}
