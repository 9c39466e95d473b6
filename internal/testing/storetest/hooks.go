package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// newHook returns a hook with a revision.
func newHook(name string, revision int64) persistence.Hook {
	return persistence.Hook{Name: name, Settings: []byte(`{"flow":"f"}`),
		Secrets:  []persistence.HookSecret{{Text: "new", Until: 0}, {Text: "old", Until: 9}},
		Revision: revision, CreatedAt: 1, UpdatedAt: revision}
}

// newDelivery returns a delivery that is kept until a time.
func newDelivery(id string, until int64) persistence.Delivery {
	return persistence.Delivery{Hook: "h", ID: id, Digest: "d", Task: "t", At: 1, Until: until}
}

var hooks = []storeBehavior{
	{"a hook is kept as it was written, and in order of name", func(w *testEnv) {
		b, a := newHook("b", 1), newHook("a", 1)
		a.Disabled, a.Secrets = true, []persistence.HookSecret{}
		require.NoError(w, w.PutHook(w.ctx(), b))
		require.NoError(w, w.PutHook(w.ctx(), a))
		got, err := w.Hook(w.ctx(), "b")
		require.NoError(w, err)
		require.Equal(w, b, *got)
		list, err := w.ListHooks(w.ctx(), "", 10)
		require.NoError(w, err)
		require.Equal(w, []persistence.Hook{a, b}, list)
		list, err = w.ListHooks(w.ctx(), "", 1)
		require.NoError(w, err)
		require.Equal(w, []persistence.Hook{a}, list)
		list, err = w.ListHooks(w.ctx(), "a", 10)
		require.NoError(w, err)
		require.Equal(w, []persistence.Hook{b}, list)
	}},
	{"of two who change a hook one is told to look again", func(w *testEnv) {
		require.NoError(w, w.PutHook(w.ctx(), newHook("a", 1)))
		require.ErrorIs(w, w.PutHook(w.ctx(), newHook("a", 1)), persistence.ErrStale)
		require.NoError(w, w.PutHook(w.ctx(), newHook("a", 2)))
		require.ErrorIs(w, w.PutHook(w.ctx(), newHook("a", 2)), persistence.ErrStale)
		require.ErrorIs(w, w.PutHook(w.ctx(), newHook("a", 4)), persistence.ErrStale)
		require.ErrorIs(w, w.PutHook(w.ctx(), newHook("b", 2)), persistence.ErrStale)
		got, err := w.Hook(w.ctx(), "a")
		require.NoError(w, err)
		require.Equal(w, newHook("a", 2), *got)
	}},
	{"a deleted hook is not there, and may be written anew", func(w *testEnv) {
		require.ErrorIs(w, w.DeleteHook(w.ctx(), "a"), persistence.ErrNotFound)
		require.NoError(w, w.PutHook(w.ctx(), newHook("a", 1)))
		require.NoError(w, w.DeleteHook(w.ctx(), "a"))
		_, err := w.Hook(w.ctx(), "a")
		require.ErrorIs(w, err, persistence.ErrNotFound)
		_, err = w.Hook(w.ctx(), "nul\x00")
		require.ErrorIs(w, err, persistence.ErrNotFound)
		require.NoError(w, w.PutHook(w.ctx(), newHook("a", 1)))
	}},
	{"a delivery is new once", func(w *testEnv) {
		known, err := w.BeginDelivery(w.ctx(), newDelivery("a", 5))
		require.NoError(w, err)
		require.Nil(w, known)
		other := newDelivery("a", 9)
		other.Digest, other.Task, other.At = "e", "u", 7
		known, err = w.BeginDelivery(w.ctx(), other)
		require.NoError(w, err)
		first := newDelivery("a", 5)
		require.Equal(w, &first, known)
		other.Hook = "another hook"
		known, err = w.BeginDelivery(w.ctx(), other)
		require.NoError(w, err)
		require.Nil(w, known)
	}},
	{"the first answer to a delivery stays", func(w *testEnv) {
		_, err := w.BeginDelivery(w.ctx(), newDelivery("a", 5))
		require.NoError(w, err)
		require.NoError(w, w.EndDelivery(w.ctx(), "h", "a", []byte("one")))
		require.NoError(w, w.EndDelivery(w.ctx(), "h", "a", []byte("two")))
		require.NoError(w, w.EndDelivery(w.ctx(), "h", "unknown", []byte("two")))
		known, err := w.BeginDelivery(w.ctx(), newDelivery("a", 5))
		require.NoError(w, err)
		require.Equal(w, "one", string(known.Answer))
	}},
	{"of many who begin a delivery at once it is new to one", func(w *testEnv) {
		var begun atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				known, err := w.BeginDelivery(w.ctx(), newDelivery("a", 5))
				if err == nil && known == nil {
					begun.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(w, 1, begun.Load())
	}},
	{"deliveries are forgotten when their time is over, the oldest first", func(w *testEnv) {
		for i := range 5 {
			_, err := w.BeginDelivery(w.ctx(), newDelivery(fmt.Sprint(i), int64(10-i)))
			require.NoError(w, err)
		}
		n, err := w.ForgetDeliveries(w.ctx(), 9, 2)
		require.NoError(w, err)
		require.Equal(w, 2, n)
		n, err = w.ForgetDeliveries(w.ctx(), 9, 2)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		for i, want := range []bool{true, true, false, false, false} {
			known, err := w.BeginDelivery(w.ctx(), newDelivery(fmt.Sprint(i), 20))
			require.NoError(w, err)
			require.Equal(w, want, known != nil, i)
		}
	}},
}
