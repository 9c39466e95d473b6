package durable

import (
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/internal/conversation"
)

// Promise is the future result of a branch.
type Promise[T any] struct {
	branch *conversation.Promise
	value  T
	err    error
}

// Go starts a branch that runs concurrently with the function. When the function returns, branches
// without a Wait are canceled.
func Go[T any](f *Flow, name string, run func(f *Flow) (T, error)) *Promise[T] {
	p := &Promise[T]{}
	p.branch = f.b.Go(name, func(b *conversation.Branch) { p.value, p.err = runBranch(b, run) })
	return p
}

// Wait waits for the end of the branch and returns its result. f is the Flow of the waiting
// function or branch.
func (p *Promise[T]) Wait(f *Flow) (T, error) {
	p.branch.Await(f.b)
	return p.value, p.err
}

// All runs branches concurrently and returns their results in order when all have ended. Their
// errors are joined. The steps of a branch have names like NAME/0/STEP.
func All[T any](f *Flow, name string, runs ...func(f *Flow) (T, error)) ([]T, error) {
	return Each(f, name, runs, len(runs), func(f *Flow, run func(f *Flow) (T, error)) (T, error) { return run(f) })
}

// Each runs a branch for each item, at most atOnce of them at a time. It returns the results in the
// order of the items when all branches have ended. A failed branch does not stop the others. The
// errors are joined, each with the index of its item.
func Each[Item, T any](f *Flow, name string, items []Item, atOnce int, run func(f *Flow, item Item) (T, error)) ([]T, error) {
	results, failed := make([]T, len(items)), make([]error, len(items))
	f.b.Each(name, len(items), atOnce, func(i int, b *conversation.Branch) {
		v, err := runBranch(b, func(f *Flow) (T, error) { return run(f, items[i]) })
		if err != nil {
			failed[i] = fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		results[i] = v
	})
	return results, errors.Join(failed...)
}

// Race runs branches concurrently, and returns the index and the result of the first branch that
// ends. The winner is recorded. The other branches are canceled: the contexts of their steps end,
// and their waits are withdrawn.
//
// A step of a losing branch that succeeds anyway is recorded. A step that is interrupted may have
// had its effect. Undos of losing branches run only if the function fails, like all undos. So the
// function itself must undo what a losing branch has done. A signal that has ended a wait of a
// losing branch is consumed.
func Race[T any](f *Flow, name string, runs ...func(f *Flow) (T, error)) (winner int, _ T, _ error) {
	if len(runs) == 0 {
		panic("durable: a race needs a branch")
	}
	results, failed := make([]T, len(runs)), make([]error, len(runs))
	winner = f.b.Race(name, len(runs), func(i int, b *conversation.Branch) { results[i], failed[i] = runBranch(b, runs[i]) })
	return winner, results[winner], failed[winner]
}

// runBranch calls the function of a branch. A panic becomes the error of the branch.
func runBranch[T any](b *conversation.Branch, run func(f *Flow) (T, error)) (v T, err error) {
	err = conversation.Recover(func() (err error) {
		v, err = run(&Flow{b: b})
		return err
	})
	return v, err
}
