//go:build unix

package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/job"
)

// readStream returns the values of a stream that has ended, as JSON.
func readStream(t *testing.T, e *troupe.Engine, id, name string) string {
	t.Helper()
	var texts []string
	for value, err := range e.FollowStream(t.Context(), id, name, 0) {
		require.NoError(t, err)
		require.EqualValues(t, len(texts), value.Offset)
		texts = append(texts, string(value.Value))
	}
	return strings.Join(texts, " ")
}

func TestValuesOfAStreamAreReadWhileTheFunctionRuns(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e, read := open(), make(chan struct{})
		id := startFunction(t, e, func(f *durable.Flow, _ input) (string, error) {
			if err := f.Stream("answer").Write(map[string]string{"text": "it is <on> its way"}); err != nil {
				return "", err
			}
			return "", f.Do("wait", func(ctx context.Context) error {
				if err := job.Stream(ctx, "answer").Write("é"); err != nil {
					return err
				}
				<-read
				return nil
			})
		})
		var values []troupe.StreamValue
		for value, err := range e.FollowStream(t.Context(), id, "answer", 0) {
			require.NoError(t, err)
			if values = append(values, value); len(values) == 2 {
				close(read) // the step has not ended before
			}
		}
		require.Len(t, values, 2)
		require.JSONEq(t, `{"text": "it is <on> its way"}`, string(values[0].Value))
		require.Equal(t, []any{"", 1, 0}, []any{values[0].Step, values[0].Attempt, values[0].Try})
		require.Equal(t, `"é"`, string(values[1].Value))
		require.Equal(t, []any{"wait", 1, 1}, []any{values[1].Step, values[1].Attempt, values[1].Try})
		requireResult(t, e, id, `""`)

		page, err := e.StreamPage(t.Context(), id, "answer", 1)
		require.NoError(t, err)
		require.Equal(t, troupe.StreamPage{Values: values[1:], Next: 2, Ended: true}, *page)
		list, err := e.Streams(t.Context(), id)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, []any{"answer", int64(2), true}, []any{list[0].Name, list[0].Length, list[0].Ended})
	})
}

func TestAReplayWritesNoValueOfAStreamTwice(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		id := startFunction(t, e, func(f *durable.Flow, _ input) (string, error) {
			for k := range 3 {
				_ = f.Stream("s").Write(k)
				f.Sleep("rest", 2*time.Millisecond)
				_ = f.Stream("s").Write(10 + k)
			}
			_, err := durable.All(f, "both",
				func(f *durable.Flow) (int, error) {
					f.Sleep("rest", time.Millisecond)
					return 0, f.Stream("a").Write(1)
				},
				func(f *durable.Flow) (int, error) {
					f.Sleep("rest", 2*time.Millisecond)
					return 0, f.Stream("b").Write(2)
				})
			f.Sleep("end", time.Millisecond)
			return "", err
		})
		requireResult(t, e, id, `""`)
		require.Equal(t, "0 10 1 11 2 12", readStream(t, e, id, "s"))
		require.Equal(t, "1", readStream(t, e, id, "a"))
		require.Equal(t, "2", readStream(t, e, id, "b"))
	})
}

func TestAStepThatIsTriedAgainWritesAgainWithTheNumberOfItsTry(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		var tries atomic.Int64
		e := open()
		id := startFunction(t, e, func(f *durable.Flow, _ input) (string, error) {
			return "", f.Do("say", func(context.Context) error {
				_ = f.Stream("s").Write("hello") // as job.Stream(ctx, "s") does
				if tries.Add(1) < 3 {
					return errors.New("not yet")
				}
				return f.Stream("s").Close()
			}, durable.Retry(2, time.Millisecond))
		})
		requireResult(t, e, id, `""`)
		page, err := e.StreamPage(t.Context(), id, "s", 0)
		require.NoError(t, err)
		require.Len(t, page.Values, 3)
		for i, v := range page.Values {
			require.Equal(t, []any{`"hello"`, "say", i + 1}, []any{string(v.Value), v.Step, v.Try})
		}
	})
}

func TestAStreamThatIsClosedEndsForItsReadersBeforeTheTask(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e, read := open(), make(chan struct{})
		id := startFunction(t, e, func(f *durable.Flow, _ input) (string, error) {
			_ = f.Stream("s").Write(1)
			_ = f.Stream("s").Close()
			return "", f.Do("wait", func(context.Context) error { <-read; return nil })
		})
		require.Equal(t, "1", readStream(t, e, id, "s"))
		close(read)
		requireResult(t, e, id, `""`)
	})
}

func TestFullStreamsRefuseValuesAndTheTaskGoesOn(t *testing.T) {
	t.Parallel()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + t.TempDir() + "/x.db", MaxStreams: 100})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	refused := make(chan error, 2)
	id := startFunction(t, e, func(f *durable.Flow, _ input) (string, error) {
		return "", f.Do("say", func(ctx context.Context) error {
			s := job.Stream(ctx, "s")
			refused <- errors.Join(s.Write(strings.Repeat("x", 60)), s.Flush(ctx))
			refused <- errors.Join(s.Write(strings.Repeat("x", 60)), s.Flush(ctx))
			require.Error(t, s.Write(1), "a stream that has lost a value takes no further ones")
			return nil
		})
	})
	requireResult(t, e, id, `""`)
	const full = "the stream s: the streams of the task are full: they may have 100 bytes"
	require.NoError(t, <-refused)
	require.EqualError(t, <-refused, full)
	page, err := e.Logs(t.Context(), id, troupe.LogQuery{})
	require.NoError(t, err)
	require.Equal(t, "values of streams were lost: "+full, page.Items[0].Text)
}

func TestAValueThatAStreamCannotHaveIsRefusedAtOnce(t *testing.T) {
	require.ErrorContains(t, job.Stream(t.Context(), "s").Write(func() {}), "cannot be written as JSON")
	require.ErrorContains(t, job.Stream(t.Context(), "s").Write(strings.Repeat("x", job.MaxStreamValue)), "more than 262144")
	require.ErrorContains(t, job.Stream(t.Context(), "a/b").Write(1), `cannot have the name "a/b"`)
	require.NoError(t, job.Stream(t.Context(), "s").Write(1), "without an engine the value is dropped")
}
