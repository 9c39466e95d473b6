package expr

import "errors"

// Budget is how much work all conditions and expressions of one step may do together, in units of
// work. The whole budget takes about two tenths of a second. One unit is:
//
//   - a node of an expression evaluated, or a value read;
//   - a byte of a list or object compared, or eight bytes of a text;
//   - four bytes that a CEL expression passes on;
//   - eight bytes matched with one state of a regular expression.
const Budget = 3_000_000

const tooMuch = "it takes more than the limit of 3,000,000 units of work: work on less data, or leave this to a worker"

var errTooMuch = errors.New(tooMuch)

// Allowance is the part of a budget that is left. A nil Allowance gives each evaluation a budget of
// its own.
type Allowance struct{ left uint64 }

// NewAllowance returns a whole budget.
func NewAllowance() *Allowance { return &Allowance{Budget} }

// Spent returns how much has been used.
func (a *Allowance) Spent() int { return Budget - int(a.left) }

func orAllowance(a *Allowance) *Allowance {
	if a == nil {
		return NewAllowance()
	}
	return a
}

// Pay subtracts a cost. It fails if not enough is left.
func (a *Allowance) Pay(cost int) error {
	if !a.chargeCost(cost) {
		return errTooMuch
	}
	return nil
}

// chargeCost subtracts a cost and reports whether anything is left after that. If it returns false,
// the allowance is used up, and the work must not be done.
func (a *Allowance) chargeCost(cost int) bool {
	if uint64(cost) > a.left {
		a.left = 0
		return false
	}
	a.left -= uint64(cost)
	return a.left > 0
}
