package faulty_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
)

func TestWithoutFaultsItIsTheStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) persistence.Store {
		return faulty.Wrap(model.New(model.Options{}), faulty.Hooks{})
	})
}

var creation = []persistence.Commit{{Task: "a", Create: &persistence.Create{FlowID: "flow",
	VersionID: "version"}, Seq: 1, Events: []byte("[]")}}

// commit creates a task through one fault and reports whether it was written.
func commit(t *testing.T, f faulty.Fault) (written bool, err error) {
	inner := model.New(model.Options{})
	s := faulty.Wrap(inner, faulty.Hooks{Commit: func(string, []persistence.Commit) faulty.Fault { return f }})
	storetest.Publish(t, inner, "flow", "version")
	me, err := s.Join(t.Context(), persistence.Joining{Name: "me", TTL: time.Hour})
	require.NoError(t, err)
	_, err = s.Commit(t.Context(), me, creation)
	records, e := inner.Load(t.Context(), []string{"a"})
	require.NoError(t, e)
	return records[0] != nil, err
}

func TestFaults(t *testing.T) {
	var later func()
	released := make(chan struct{})
	close(released)
	for name, tt := range map[string]struct {
		fault   faulty.Fault
		written bool
		err     error
	}{
		"no fault":                      {faulty.Fault{}, true, nil},
		"a failed batch is not there":   {faulty.Fail(), false, faulty.ErrFailed},
		"a lost batch is there":         {faulty.Lose(), true, faulty.ErrLost},
		"a held batch is written":       {faulty.Hold(released), true, nil},
		"a late batch is not yet there": {faulty.Fault{Late: func(write func()) { later = write }}, false, faulty.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := commit(t, tt.fault)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.written, written)
		})
	}
	later() // has no effect any more
}

func TestALateBatchLandsUnlessItsSenderWasFenced(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		var later func()
		s := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(string, []persistence.Commit) faulty.Fault {
			return faulty.Fault{Late: func(write func()) { later = write }}
		}})
		storetest.Publish(t, s, "flow", "version")
		me, err := s.Join(t.Context(), persistence.Joining{Name: "me", TTL: time.Hour})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		_, err = s.Commit(ctx, me, creation)
		require.ErrorIs(t, err, faulty.ErrLost)
		cancel()
		if fenced {
			require.NoError(t, s.Leave(t.Context(), me))
		}
		later()
		records, err := s.Load(t.Context(), []string{"a"})
		require.NoError(t, err)
		require.Equal(t, fenced, records[0] == nil)
	}
}

func TestAHeldBatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, faulty.Hold(nil).Before(ctx), context.Canceled)
}

func TestOtherCallsFailByTheirName(t *testing.T) {
	broken := errors.New("broken")
	var names []string
	s := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Call: func(_ context.Context, name string) error {
		names = append(names, name)
		return broken
	}})
	ctx := t.Context()
	var errs [15]error
	_, errs[0] = s.Join(ctx, persistence.Joining{Name: "me"})
	_, errs[1] = s.Renew(ctx, "me", 0)
	_, errs[2] = s.Cluster(ctx)
	_, errs[3] = s.Claim(ctx, "me", nil)
	errs[4] = s.Release(ctx, "me", nil)
	_, errs[5] = s.Fence(ctx, "me")
	errs[6] = s.Leave(ctx, "me")
	_, errs[7] = s.Load(ctx, nil)
	_, errs[8] = s.Rows(ctx, "a", 0, persistence.Part{Rows: 1, Bytes: 1})
	_, errs[9] = s.Unfinished(ctx, nil, "", 1)
	_, errs[10] = s.DueWakes(ctx, nil, 0, 1)
	_, errs[11] = s.QueueRows(ctx, nil, 0, "", 1)
	errs[12] = s.Drain(ctx, "me", true)
	_, errs[13] = s.Rule(ctx, "me", persistence.PermitQuestion{Key: "k"})
	_, errs[14] = s.OpenKeys(ctx, nil, "", 1)
	for _, err := range errs {
		require.ErrorIs(t, err, broken)
	}
	require.Equal(t, []string{"Join", "Renew", "Cluster", "Claim", "Release", "Fence", "Leave",
		"Load", "Rows", "Unfinished", "DueWakes", "QueueRows", "Drain", "Rule", "OpenKeys"}, names)
}

func TestASeedGivesTheSameFaultsAgain(t *testing.T) {
	kinds := func(seed uint64) string {
		decide := faulty.Seeded(seed, faulty.Odds{Fail: 200, Lose: 200, Late: 200, Slow: 200},
			func(context.Context) error { return nil }, func(func()) {})
		kinds := ""
		for range 200 {
			f := decide("me", nil)
			kinds += map[[3]bool]string{{}: ".", {true, false, false}: "f",
				{false, true, false}: "l", {false, false, true}: "t",
				{true, true, false}: "s"}[[3]bool{f.Before != nil, f.After != nil, f.Late != nil}]
		}
		return kinds
	}
	require.Equal(t, kinds(1), kinds(1))
	require.NotEqual(t, kinds(1), kinds(2))
	for _, kind := range ".flts" {
		require.Contains(t, kinds(1), string(kind))
	}
}
