package streams

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// heldStore stores a batch for each value that arrives in its channel, with the given error.
type heldStore struct {
	persistence.Streams
	answers chan error

	mu      sync.Mutex
	batches []int // number of writes
}

func (s *heldStore) AppendStreams(_ context.Context, writes []persistence.StreamWrite, _ persistence.StreamLimits) ([]error, error) {
	err := <-s.answers
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, len(writes))
	errs := make([]error, len(writes))
	for i, w := range writes {
		if w.Name == "full" {
			errs[i] = errors.New("full " + w.Task)
		}
	}
	return errs, err
}

func writeOf(task, name string) []persistence.StreamWrite {
	return []persistence.StreamWrite{{Task: task, Name: name, Values: []json.RawMessage{json.RawMessage(`1`)}}}
}

func TestWritesThatArriveMeanwhileShareATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &heldStore{answers: make(chan error)}
		b := New(Options{Store: store})
		var callers sync.WaitGroup
		appendTo := func(task, name string) {
			callers.Go(func() {
				errs, err := b.Append(t.Context(), writeOf(task, name))
				require.NoError(t, err)
				require.Len(t, errs, 1)
				if name == "full" {
					require.EqualError(t, errs[0], "full "+task, "each caller has its own answer")
					return
				}
				require.NoError(t, errs[0])
			})
		}
		appendTo("first", "s")
		synctest.Wait()
		for n := range 10 {
			appendTo(strconv.Itoa(n), []string{"s", "full"}[n%2])
			synctest.Wait()
		}
		store.answers <- nil
		store.answers <- nil
		callers.Wait()
		require.Equal(t, []int{1, 10}, store.batches)
	})
}

func TestAFailedTransactionFailsAllItsWritesAndNoLaterOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &heldStore{answers: make(chan error, 3)}
		b := New(Options{Store: store})
		store.answers <- persistence.ErrUnavailable
		_, err := b.Append(t.Context(), writeOf("a", "s"))
		require.ErrorIs(t, err, persistence.ErrUnavailable)
		store.answers <- nil
		_, err = b.Append(t.Context(), writeOf("a", "s"))
		require.NoError(t, err)
	})
}
