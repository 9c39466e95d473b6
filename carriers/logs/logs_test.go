package logs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long tests wait for events that are immediate on an idle machine.
const patience = time.Minute

// open returns a store with the task t, and a book that calls a hook before each write.
func open(t *testing.T, keep int, hook func(context.Context) error) (*logs.Book, persistence.Store) {
	t.Helper()
	store := model.New(model.Options{})
	storetest.Publish(t, store, "flow", "version")
	me, err := store.Join(t.Context(), persistence.Joining{Name: "me", TTL: time.Hour})
	require.NoError(t, err)
	_, err = store.Commit(t.Context(), me,
		[]persistence.Commit{{Task: "t", Create: &persistence.Create{FlowID: "flow",
			VersionID: "version"}, Seq: 1, Events: []byte("[]")}})
	require.NoError(t, err)
	asked := faulty.Wrap(store, faulty.Hooks{Call: func(ctx context.Context, name string) error {
		if name != "AppendLog" || hook == nil {
			return nil
		}
		return hook(ctx)
	}})
	b := logs.New(logs.Options{Store: asked, Keep: keep, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
	return b, store
}

// text returns the stored log of a job, each line with its stream.
func text(t *testing.T, store persistence.Store, job string) string {
	t.Helper()
	parts, err := store.ReadLog(t.Context(), persistence.LogFilter{Task: "t", Job: job, Limit: 1 << 20})
	require.NoError(t, err)
	var all strings.Builder
	for _, p := range parts {
		for _, l := range p.Lines {
			all.WriteString(l.Stream + ": " + l.Text)
		}
	}
	return all.String()
}

func TestLinesAreStoredWhileTheAttemptRuns(t *testing.T) {
	b, store := open(t, 0, nil)
	w := b.Open("t", "j")
	fmt.Fprintln(w.Stream(lines.Stdout), "one")
	fmt.Fprintln(w.Stream(lines.Stderr), "two")
	fmt.Fprint(w, "half")
	require.Eventually(t, func() bool { return text(t, store, "j") == "stdout: one\nstderr: two\n" }, patience, time.Millisecond)
	require.True(t, w.Close())
	require.Equal(t, "stdout: one\nstderr: two\nlog: half", text(t, store, "j"), "it can be read when it is closed")
}

func TestAnAttemptThatPrintsNothingHasNoLog(t *testing.T) {
	b, store := open(t, 0, nil)
	require.False(t, b.Open("t", "j").Close())
	require.Empty(t, text(t, store, "j"))
	var none *logs.Book
	w := none.Open("t", "j")
	fmt.Fprintln(w, "nobody hears it")
	fmt.Fprintln(w.Stream(lines.Stdout), "nor this")
	require.False(t, w.Close())
}

func TestLogWritesAreRetriedAndDoNotBlockJobs(t *testing.T) {
	var away atomic.Bool
	away.Store(true)
	b, store := open(t, 0, func(context.Context) error {
		if away.Load() {
			return persistence.ErrUnavailable
		}
		return nil
	})
	w := b.Open("t", "j")
	fmt.Fprintln(w, "said while the store is away")
	require.True(t, w.Close())
	away.Store(false)
	require.Eventually(t, func() bool { return text(t, store, "j") != "" }, patience, time.Millisecond)
}

func TestLinesBeyondTheBufferAreCountedInTheirPlace(t *testing.T) {
	held, free := make(chan struct{}), make(chan struct{})
	first := true
	b, store := open(t, 0, func(context.Context) error {
		if first {
			first = false
			close(held)
			<-free
		}
		return nil
	})
	other := b.Open("t", "other")
	fmt.Fprintln(other, "said")
	<-held
	w := b.Open("t", "j")
	const all = 20_000
	for i := range all {
		fmt.Fprintf(w, "%0100d\n", i)
	}
	close(free)
	require.True(t, w.Close())
	kept := strings.Split(strings.TrimSpace(text(t, store, "j")), "\n")
	require.Equal(t, fmt.Sprintf("log: … %d lines lost here", all-len(kept)+1), kept[len(kept)-1])
	require.Equal(t, fmt.Sprintf("log: %0100d", 0), kept[0])
	require.Less(t, len(kept), 15_000)
}

func TestARefusedChunkDoesNotAffectOthers(t *testing.T) {
	calls := 0
	b, store := open(t, 0, func(context.Context) error {
		if calls++; calls <= 2 { // all of them, and the first one alone
			return fmt.Errorf("odd: %w", persistence.ErrRefused)
		}
		return nil
	})
	w, v := b.Open("t", "j"), b.Open("t", "k")
	_, _ = io.WriteString(w, "bad\nbad\n")
	_, _ = io.WriteString(v, "good\n")
	require.True(t, v.Close())
	require.True(t, w.Close())
	require.NoError(t, b.Close(t.Context()))
	require.Equal(t, "log: good\n", text(t, store, "k"))
	require.Equal(t, "log: … 2 lines lost here\n", text(t, store, "j"))
}

func TestALogPartAddedTwiceIsStoredOnce(t *testing.T) {
	b, store := open(t, 0, nil)
	part := func(number int64, texts ...string) persistence.LogChunk {
		p := persistence.LogChunk{Task: "t", Job: "j", Source: "token", Number: number}
		for _, text := range texts {
			p.Lines = append(p.Lines, lines.Line{Stream: lines.Log, Text: text})
		}
		return p
	}
	require.True(t, b.Add(part(2, "1\n", "2\n")))
	require.True(t, b.Add(part(2, "1\n", "2\n")))
	require.True(t, b.Add(part(3, "2\n", "3\n")))
	require.False(t, b.Add(part(3)))
	require.Equal(t, "log: 1\nlog: 2\nlog: 3\n", text(t, store, "j"))
}

// Several members that poll external work may each read all its output again, at the same time.
func TestALogReadAgainFromItsStartHasEachLineOnce(t *testing.T) {
	b, store := open(t, 0, nil)
	first := b.Resume("t", "j", "box")
	fmt.Fprint(first.Stream(lines.Stdout), "one\ntwo\n")
	require.True(t, first.Close())
	again := b.Resume("t", "j", "box")
	fmt.Fprint(again.Stream(lines.Stdout), "one\ntwo\nthree\n")
	require.True(t, again.Close())
	fmt.Fprint(first.Stream(lines.Stdout), "three\nfour\n")
	require.Eventually(t, func() bool {
		return text(t, store, "j") == "stdout: one\nstdout: two\nstdout: three\nstdout: four\n"
	}, patience, time.Millisecond)
}

// TestLinesLostInARepeatedReadKeepTheirNumbers reads the stored part again faster than
// the store accepts it, like the next member after one that was killed.
func TestLinesLostInARepeatedReadKeepTheirNumbers(t *testing.T) {
	var hold atomic.Bool
	held, free := make(chan struct{}), make(chan struct{})
	b, store := open(t, 0, func(context.Context) error {
		if hold.CompareAndSwap(true, false) {
			close(held)
			<-free
		}
		return nil
	})
	const half = 8_000
	tell := func(w io.Writer, from, to int) {
		for i := from; i < to; i++ {
			fmt.Fprintf(w, "%0100d\n", i)
		}
	}
	first := b.Resume("t", "j", "box")
	for from := 0; from < 2*half; from += half { // as much as fits
		tell(first.Stream(lines.Stdout), from, from+half)
		last := fmt.Sprintf("%0100d\n", from+half-1)
		require.Eventually(t, func() bool { return strings.HasSuffix(text(t, store, "j"), last) }, patience, time.Millisecond)
	}
	before := text(t, store, "j")

	hold.Store(true)
	fmt.Fprintln(b.Open("t", "other"), "said")
	<-held
	again := b.Resume("t", "j", "box")
	tell(again.Stream(lines.Stdout), 0, 2*half)
	close(free)
	require.True(t, again.Close())
	fmt.Fprintln(again.Stream(lines.Stdout), "new")
	require.NoError(t, b.Close(t.Context()))
	require.Equal(t, before+"stdout: new\n", text(t, store, "j"))
}

func TestALongLogKeepsItsNewestLines(t *testing.T) {
	b, store := open(t, 100_000, nil)
	w := b.Open("t", "j")
	for i := range 3000 {
		fmt.Fprintf(w, "%099d\n", i)
		if i%500 == 0 {
			require.Eventually(t, func() bool {
				return strings.HasSuffix(text(t, store, "j"),
					fmt.Sprintf("%099d\n", i))
			}, patience, time.Millisecond)
		}
	}
	require.True(t, w.Close())
	kept := text(t, store, "j")
	require.True(t, strings.HasSuffix(kept, fmt.Sprintf("%099d\n", 2999)))
	require.LessOrEqual(t, strings.Count(kept, "\n"), 1000)
	require.Greater(t, strings.Count(kept, "\n"), 100)
}

func TestClosingABookStoresTheRemainingLines(t *testing.T) {
	b, store := open(t, 0, nil)
	fmt.Fprintln(b.Open("t", "j"), "last words")
	require.NoError(t, b.Close(t.Context()))
	require.Equal(t, "log: last words\n", text(t, store, "j"))
}

func TestClosingABookDoesNotWaitForAnUnavailableStore(t *testing.T) {
	b, _ := open(t, 0, func(context.Context) error { return errors.New("away") })
	fmt.Fprintln(b.Open("t", "j"), "last words")
	require.NoError(t, b.Close(t.Context()))
}
