package expr

import "errors"

// Budget is what the conditions and expressions of one step may do together, in units of work: a
// node of an expression evaluated, a value looked at, a byte of a list or object that is compared,
// eight bytes of a text, four of what an expression in CEL passes on, or eight bytes matched with
// one state of a regular expression. That much is done in two tenths of a second.
const Budget = 3_000_000

const tooMuch = "it takes more than the limit of 3,000,000 units of work: work on less data, or leave this to a worker"

var errTooMuch = errors.New(tooMuch)

// Allowance is what may still be done of a budget. One for nothing in particular is nil: each
// evaluation has a budget of its own then.
type Allowance struct{ left uint64 }

// NewAllowance is a whole budget.
func NewAllowance() *Allowance { return &Allowance{Budget} }

// Spent is how much of it has been used.
func (a *Allowance) Spent() int { return Budget - int(a.left) }

func orAllowance(a *Allowance) *Allowance {
	if a == nil {
		return NewAllowance()
	}
	return a
}

// Pay takes a cost off what is left. It fails when that is not enough.
func (a *Allowance) Pay(cost int) error {
	if !a.chargeCost(cost) {
		return errTooMuch
	}
	return nil
}

// chargeCost is false when there is not as much left. Then nothing is, and what costs something
// must not be done.
func (a *Allowance) chargeCost(cost int) bool {
	if uint64(cost) > a.left {
		a.left = 0
		return false
	}
	a.left -= uint64(cost)
	return a.left > 0
}
