// Package faulty wraps a store for tests: it fails calls, loses results, delays and writes late, as
// its caller decides for each call. It has no clock, no goroutine and no randomness of its own, so
// the same decisions give the same run.
package faulty

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/troupe-engine/troupe/persistence"
)

var (
	// ErrFailed is the error of a call that did nothing.
	ErrFailed = errors.New("faulty: the call failed")
	// ErrLost is the error of a batch that was written, or will be.
	ErrLost = errors.New("faulty: the answer was lost")
)

// Fault is the fault of one batch. The zero value means no fault.
type Fault struct {
	// Before runs first. If it returns an error, that is the result and nothing is written. It may
	// block.
	Before func(context.Context) error
	// After runs after the batch is written. If it returns an error, that is the result. It may
	// block.
	After func(context.Context) error
	// Late receives the write and may run it at any time, perhaps after the sender was fenced. The
	// result is ErrLost at once. It excludes the other two.
	Late func(write func())
}

// Hooks decide about faults. Nil hooks cause none.
type Hooks struct {
	// Commit is called once for each batch, and never concurrently.
	Commit func(incarnation string, batch []persistence.Commit) Fault
	// Call runs before every other call that tasks and members depend on: Join, Renew, Leave,
	// Cluster, Claim, Release, Fence, Load, Rows, Checkpoints, Checkpoint, Unfinished, DueWakes,
	// QueueRows, Rule, OpenKeys, DueSchedules, PutSchedule, NextExternals, NoteExternals,
	// AppendLog, and AddStats. If it returns an error, that is the result. It may block.
	Call func(ctx context.Context, name string) error
}

// Fail is a fault that returns ErrFailed and writes nothing.
func Fail() Fault {
	return Fault{Before: func(context.Context) error { return ErrFailed }}
}

// Lose is a fault that writes and returns ErrLost.
func Lose() Fault {
	return Fault{After: func(context.Context) error { return ErrLost }}
}

// Hold is a fault that waits before the write until released is closed or the context ends.
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

// Odds are the numbers of batches in 1,000 that get a fault.
type Odds struct {
	Fail, Lose, Late, Slow int
}

// Seeded returns a Commit hook that chooses faults by a seed. slow delays a slow batch before and
// after its write, and late takes a late write; nil turns either off.
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

// Wrap returns the store with the hooks called around its batches.
func Wrap(s persistence.Store, hooks Hooks) persistence.Store {
	return &store{Store: s, hooks: hooks}
}

type store struct {
	persistence.Store
	hooks Hooks
	mu    sync.Mutex // held during a call of a hook, so that calls are not concurrent
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
