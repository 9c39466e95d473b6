// Package faulty wraps a store for tests: it fails, loses answers, delays and writes late, as its
// caller decides, call by call. It has no clock, no goroutine and no chance of its own, so the same
// decisions give the same run.
package faulty

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/troupe-engine/troupe/persistence"
)

var (
	// ErrFailed answers a call that did nothing.
	ErrFailed = errors.New("faulty: the call failed")
	// ErrLost answers a batch that was written, or will be.
	ErrLost = errors.New("faulty: the answer was lost")
)

// Fault is what happens to one batch. The zero value is nothing.
type Fault struct {
	// Before runs first. Its error is the answer, and nothing is written. It may block.
	Before func(context.Context) error
	// After runs when the batch is written. Its error is the answer all the same. It may block.
	After func(context.Context) error
	// Late gets the write to carry out whenever it likes, perhaps after the sender was fenced; the
	// answer is ErrLost at once. It excludes the other two.
	Late func(write func())
}

// Hooks decide. Nil hooks do no harm.
type Hooks struct {
	// Commit is asked once for each batch, never twice at the same time.
	Commit func(incarnation string, batch []persistence.Commit) Fault
	// Call runs before any other call that tasks and members live by: Join, Renew, Leave, Cluster,
	// Claim, Release, Fence, Load, Rows, Checkpoints, Checkpoint, Unfinished, DueWakes, QueueRows,
	// Rule, OpenKeys, DueSchedules, PutSchedule, NextExternals, NoteExternals, AppendLog, and
	// AddStats. Its error is the answer. It may block.
	Call func(ctx context.Context, name string) error
}

// Fail answers with ErrFailed and writes nothing.
func Fail() Fault {
	return Fault{Before: func(context.Context) error { return ErrFailed }}
}

// Lose writes and answers with ErrLost.
func Lose() Fault {
	return Fault{After: func(context.Context) error { return ErrLost }}
}

// Hold waits before it writes, until released or until the context ends.
func Hold(released <-chan struct{}) Fault {
	return Fault{Before: func(ctx context.Context) error {
		select {
		case <-released:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// Odds say how many of 1,000 batches meet a fault.
type Odds struct {
	Fail, Lose, Late, Slow int
}

// Seeded chooses faults by a seed. slow is what a slow batch waits by, before and after its write,
// and late keeps a late write for later; nil turns either off.
func Seeded(seed uint64, odds Odds, slow func(context.Context) error, late func(write func())) func(string, []persistence.Commit) Fault {
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(string, []persistence.Commit) Fault {
		n := rng.IntN(1000)
		for _, choice := range []struct {
			odds  int
			fault Fault
		}{
			{odds.Fail, Fail()},
			{odds.Lose, Lose()},
			{odds.Late, Fault{Late: late}},
			{odds.Slow, Fault{Before: slow, After: slow}},
		} {
			if n -= choice.odds; n < 0 {
				return choice.fault
			}
		}
		return Fault{}
	}
}

// Wrap puts hooks around a store.
func Wrap(s persistence.Store, hooks Hooks) persistence.Store {
	return &store{Store: s, hooks: hooks}
}

type store struct {
	persistence.Store
	hooks Hooks
	mu    sync.Mutex // one question at a time
}

func (s *store) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	f := s.nextFault(incarnation, batch)
	if f.Late != nil {
		f.Late(func() { _, _ = s.Store.Commit(context.WithoutCancel(ctx), incarnation, batch) })
		return nil, ErrLost
	}
	if f.Before != nil {
		if err := f.Before(ctx); err != nil {
			return nil, err
		}
	}
	answers, err := s.Store.Commit(ctx, incarnation, batch)
	if f.After != nil {
		if lost := f.After(ctx); lost != nil {
			return nil, lost
		}
	}
	return answers, err
}

func (s *store) nextFault(incarnation string, batch []persistence.Commit) Fault {
	if s.hooks.Commit == nil {
		return Fault{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hooks.Commit(incarnation, batch)
}
