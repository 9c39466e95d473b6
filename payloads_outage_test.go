package troupe

import (
	"context"
	"io/fs"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
)

// silent is a bucket that does not answer reads until it is opened.
type silent struct {
	Bucket
	asked  chan string
	opened chan struct{}
}

func (s *silent) Get(ctx context.Context, key string, most int) ([]byte, error) {
	if !strings.HasPrefix(key, "values/") {
		return s.Bucket.Get(ctx, key, most)
	}
	select {
	case s.asked <- key:
	default:
	}
	select {
	case <-s.opened:
		return s.Bucket.Get(ctx, key, most)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

const (
	looksLater = `
nodes:
  make: {func: make}
  stop: {kind: wait_event, depends_on: [make], params: {signal_key: $shared.go}}
  look: {depends_on: [make, stop], when: {expr: "deps.make.text != ''"}, func: short}
`
	mapsFirst = `
start: make
nodes:
  make: {exec_type: local_func, func: make, post: {output_map: {word: text}}}
  stop: {kind: wait_event, params: {signal_key: $shared.go}}
edges: [{from: make, action: default, to: stop}]
`
	keepsNothing = `
nodes:
  stop: {kind: wait_event, params: {signal_key: $shared.go}}
  short: {depends_on: [stop], func: short}
`
)

// A decision that depends on a value waits for it, and so does a task that is loaded. The test has
// more of both than there are goroutines for them.
func TestOtherTasksContinueWhileABucketDoesNotAnswer(t *testing.T) {
	folder, many := t.TempDir(), runtime.GOMAXPROCS(0)+8
	s := &silent{asked: make(chan string, 1), opened: make(chan struct{})}
	cfg := Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db"), PayloadThreshold: 500,
		Retention: -1, PayloadStore: "file://" + filepath.ToSlash(folder),
		Buckets: map[string]OpenBucket{"silent": func(_ context.Context, at *url.URL) (Bucket, error) {
			dir, err := objects.OpenDir(at.Path)
			s.Bucket = dir
			return s, err
		}}}
	first, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	first.makes(t)
	var need, plain []string
	for name, definition := range map[string]string{"looks": looksLater, "maps": mapsFirst, "plain": keepsNothing} {
		require.NoError(t, first.Publish(t.Context(), name, []byte(definition)))
		for range many {
			id, err := first.Start(t.Context(), name, nil)
			require.NoError(t, err)
			if name == "plain" {
				plain = append(plain, id)
			} else {
				need = append(need, id)
			}
		}
	}
	require.Eventually(t, func() bool {
		waiting, err := first.CountTasks(t.Context(), TaskQuery{Waits: []string{"signal"}}, "")
		return err == nil && waiting.Count == 3*many
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, first.Close())

	cfg.PayloadStore = "silent://" + filepath.ToSlash(folder)
	e := making(t, cfg)
	var signals sync.WaitGroup
	defer signals.Wait()
	goOn := func(id string) error { return e.Signal(t.Context(), id, "go", true) }
	for _, id := range need {
		// signals to tasks that cannot be loaded in time are sent again below
		signals.Go(func() { _ = goOn(id) })
	}
	<-s.asked
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for _, id := range plain {
		require.NoError(t, goOn(id))
		result, err := e.Wait(ctx, id)
		require.NoError(t, err, "a task that needs nothing of the bucket")
		require.EqualValues(t, flow.TaskCompleted, result.Status)
	}
	close(s.opened)
	for _, id := range need {
		_ = goOn(id) // it may have ended
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.EqualValues(t, flow.TaskCompleted, result.Status, result.Error)
	}
}

// fleeting is a bucket whose values disappear between a read in parts and a read as a whole.
type fleeting struct{ Bucket }

func (f fleeting) Get(ctx context.Context, key string, most int) ([]byte, error) {
	if strings.HasPrefix(key, "values/") {
		return nil, fs.ErrNotExist
	}
	return f.Bucket.Get(ctx, key, most)
}

func TestAValueLostDuringACallFailsTheCallOnly(t *testing.T) {
	store, folder := "sqlite:"+filepath.Join(t.TempDir(), "x.db"), t.TempDir()
	first, err := Open(t.Context(), Config{Store: store, PayloadThreshold: 500, PayloadStore: "file://" + filepath.ToSlash(folder)})
	require.NoError(t, err)
	first.makes(t)
	id, _ := first.made(t, "make", nil)
	require.NoError(t, first.Close())
	cfg := Config{Store: store, PayloadThreshold: 500, PayloadStore: "fleeting://" + filepath.ToSlash(folder),
		Buckets: map[string]OpenBucket{"fleeting": func(_ context.Context, at *url.URL) (Bucket, error) {
			dir, err := objects.OpenDir(at.Path)
			return fleeting{dir}, err
		}}}
	e := making(t, cfg)
	_, err = e.Steps(t.Context(), id, StepQuery{})
	require.ErrorContains(t, err, id, "what has gone")
}
