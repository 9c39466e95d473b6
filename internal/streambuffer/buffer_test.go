package streambuffer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/job"
)

// memoryStore stores writes. It calls fail first, which may be nil.
type memoryStore struct {
	mu     sync.Mutex
	writes []Write
	calls  int
	fail   func(call int) ([]error, error)
}

func (m *memoryStore) store(_ context.Context, writes []Write) ([]error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.fail != nil {
		if errs, err := m.fail(m.calls); err != nil || errs != nil {
			return errs, err
		}
	}
	m.writes = append(m.writes, writes...)
	return nil, nil
}

// texts returns the stored values by stream.
func (m *memoryStore) texts() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	for _, w := range m.writes {
		for _, v := range w.Values {
			all[w.Stream] += string(v)
		}
	}
	return all
}

func newValue(stream string, v any) job.StreamValue {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return job.StreamValue{Stream: stream, Value: raw}
}

func TestValuesThatFollowEachOtherShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memoryStore
		b := New(t.Context(), m.store)
		for n := range 5 {
			require.NoError(t, b.WriteValue(newValue("a", n)))
			require.NoError(t, b.WriteValue(newValue("b", n)))
		}
		step := newValue("a", 5)
		step.Step, step.Try = "plan", 1
		require.NoError(t, b.WriteValue(step))
		again := newValue("a", 6)
		again.Source, again.Number = "flow", 7
		require.NoError(t, b.WriteValue(again))
		require.NoError(t, b.WriteValue(job.StreamValue{Stream: "b", Ends: true}))
		require.NoError(t, b.Flush(t.Context(), "a"))
		require.Equal(t, 1, m.calls)
		require.Equal(t, map[string]string{"a": "0123456", "b": "01234"}, m.texts())
		var said []string
		for _, w := range m.writes {
			said = append(said, fmt.Sprintf("%s %s%d +%d %d %v", w.Stream, w.Step, w.Try, len(w.Values), w.Number, w.Ends))
		}
		require.Equal(t, []string{"a 0 +5 5 false", "b 0 +5 5 true", "a plan1 +1 6 false", "a 0 +1 7 false"}, said)
	})
}

func TestAStoreThatIsAwayLosesNoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memoryStore{fail: func(call int) (errs []error, err error) {
			if call < 5 {
				err = errors.New("away")
			}
			return nil, err
		}}
		b := New(t.Context(), m.store)
		for range 3 {
			require.NoError(t, b.WriteValue(newValue("a", 1)))
		}
		var log strings.Builder
		b.Close(&log)
		require.Empty(t, log.String())
		require.Equal(t, map[string]string{"a": "111"}, m.texts())
		require.ErrorIs(t, b.WriteValue(newValue("a", 1)), job.ErrStreamOver)
	})
}

func TestARefusedStreamTakesNoFurtherValuesAndOthersDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("it is full")
		m := memoryStore{fail: func(call int) ([]error, error) {
			if call == 1 {
				return []error{full, nil}, nil
			}
			return nil, nil
		}}
		b := New(t.Context(), m.store)
		require.NoError(t, b.WriteValue(newValue("a", 1)))
		require.NoError(t, b.WriteValue(newValue("b", 1)))
		require.EqualError(t, b.Flush(t.Context(), "a"), "the stream a: it is full")
		require.ErrorIs(t, b.WriteValue(newValue("a", 2)), full)
		require.NoError(t, b.WriteValue(newValue("b", 2)))
		require.NoError(t, b.Flush(t.Context(), "b"))
		var log strings.Builder
		b.Close(&log)
		require.Equal(t, "values of streams were lost: the stream a: it is full\n", log.String())
	})
}

func TestAWriterWaitsWhileManyValuesAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		var stored memoryStore
		b := New(t.Context(), func(ctx context.Context, writes []Write) ([]error, error) {
			<-held
			return stored.store(ctx, writes)
		})
		written := make(chan int, 100)
		go func() {
			for n := range 100 {
				if err := b.WriteValue(newValue("a", strings.Repeat("x", 64<<10))); err != nil {
					return
				}
				written <- n
			}
			close(written)
		}()
		synctest.Wait()
		require.Less(t, len(written), 20, "about 1 MiB waits")
		close(held)
		for range written {
		}
		b.Close(&strings.Builder{})
		require.Len(t, stored.texts()["a"], 100*(64<<10+2))
	})
}

func TestTheLastValuesOfAJobThatMustStopAreTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := memoryStore{fail: func(int) ([]error, error) { return nil, errors.New("away") }}
		b := New(ctx, m.store)
		require.NoError(t, b.WriteValue(newValue("a", 1)))
		cancel()
		var log strings.Builder
		b.Close(&log)
		require.Equal(t, 1, m.calls)
		require.Contains(t, log.String(), "the stream a: away")
	})
}
