package expr

import "errors"

// Budget is the maximum work of all conditions and expressions of one step, in units of work. The
// whole budget takes about 0.2 seconds. One unit is:
//
//   - the evaluation of a node of an expression, or a read of a value;
//   - a compared byte of a list or object, or eight bytes of a text;
//   - four bytes that a CEL expression passes on;
//   - eight bytes matched with one state of a regular expression.
const Budget = 3_000_000

const tooMuch = "it takes more than the limit of 3,000,000 units of work: work on less data, or leave this to a worker"

var errTooMuch = errors.New(tooMuch)

// Allowance is the rest of a budget. A nil Allowance gives each evaluation a separate budget.
type Allowance struct{ left uint64 }

// NewAllowance returns an Allowance with the whole budget.
func NewAllowance() *Allowance { return &Allowance{Budget} }

// Spent returns how many units of work have been used.
func (a *Allowance) Spent() int { return Budget - int(a.left) }

func orAllowance(a *Allowance) *Allowance {
	if a == nil {
		return NewAllowance()
	}
	return a
}

// Pay subtracts a cost. It returns an error if not enough is left.
func (a *Allowance) Pay(cost int) error {
	if !a.chargeCost(cost) {
		return errTooMuch
	}
	return nil
}

// chargeCost subtracts a cost and reports whether anything is left afterwards. If it returns false,
// the allowance is used up, and the caller must not do the work.
func (a *Allowance) chargeCost(cost int) bool {
	if uint64(cost) > a.left {
		a.left = 0
		return false
	}
	a.left -= uint64(cost)
	return a.left > 0
}
