package definition

import (
	"cmp"

	"github.com/troupe-engine/troupe/flow"
)

// Guess is the question whether another name was meant, or "". The search for a name happens only
// when the question is printed. So a problem that is not reported costs nothing.
type Guess struct {
	Word      string
	Names     func() []string
	Otherwise string // question if no name is near; "" for none
}

func (g Guess) String() string { return didYouMean(cmp.Or(g.Nearest(), g.Otherwise)) }

// Nearest returns the name that was probably meant, or "".
func (g Guess) Nearest() string { return flow.Nearest(g.Word, g.Names()) }

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return ": did you mean " + shortenName(name) + "?"
}
