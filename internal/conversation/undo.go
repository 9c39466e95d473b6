package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
)

// registeredUndo is a registered compensation.
type registeredUndo struct {
	branch *Branch
	after  int // index of the branch's last result before the registration
	name   string
	o      Options
	run    func(ctx context.Context) error
}

// Undo registers a compensation for the work so far. If the function fails, the compensations run
// as steps, newest first.
func (b *Branch) Undo(name string, o Options, run func(ctx context.Context) error) {
	checkName(name)
	b.checkFunction()
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.undos = append(b.c.undos, registeredUndo{b, b.last, name, o, run})
}

// undoAfter calls the registered undos of a failed function, newest first, when all of its branches
// have stopped. A failed undo is added to the error of the function, and the next undo runs. A
// branch that still gets a result may register an undo.
func (c *Conversation) undoAfter(o Outcome) Outcome {
	if o.Err == nil {
		return o
	}
	c.repeatBranches()
	c.stopBranches()
	if len(c.undos) == 0 {
		return o
	}
	slices.SortStableFunc(c.undos, func(a, b registeredUndo) int { return cmp.Compare(a.after, b.after) })
	branches := map[*Branch]*Branch{}
	for _, u := range c.undos {
		if branches[u.branch] == nil {
			branches[u.branch] = u.branch.continueBranch()
		}
	}
	ended := make(chan error, 1)
	go func() { // ends as a branch does
		err := o.Err
		for i := len(c.undos) - 1; i >= 0; i-- {
			u := c.undos[i]
			_, failed := branches[u.branch].doStep(Undo, u.name, u.o,
				func(ctx context.Context) (json.RawMessage, error) { return nil, u.run(ctx) })
			if failed != nil {
				err = &undoError{err, failed}
			}
		}
		ended <- err
	}()
	select {
	case o.Err = <-ended:
		return o
	case <-c.stop:
		return *c.stopped
	case <-c.ctx.Done():
		return Outcome{Over: true}
	}
}

// continueBranch returns a branch that continues after the results of a stopped branch.
func (b *Branch) continueBranch() *Branch {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	return &Branch{c: b.c, ctx: b.c.ctx, path: b.path, history: b.history, at: b.at, uses: b.uses, output: b.output, last: b.last}
}

// undoError is the error of a function whose work could not be undone.
type undoError struct{ err, undo error }

func (e *undoError) Error() string {
	return e.err.Error() + "; and it was not undone: " + e.undo.Error()
}

func (e *undoError) Unwrap() []error { return []error{e.err, e.undo} }
