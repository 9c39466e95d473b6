package troupe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
)

// over opens a member with a bucket that wraps one of a folder.
func over(t *testing.T, store, folder string, make func(Bucket) Bucket) *Engine {
	t.Helper()
	return making(t, Config{Store: store, PayloadThreshold: 500, Retention: -1, PayloadStore: "made://" + filepath.ToSlash(folder),
		Buckets: map[string]OpenBucket{"made": func(_ context.Context, at *url.URL) (Bucket, error) {
			dir, err := objects.OpenDir(at.Path)
			return make(dir), err
		}}})
}

// mute is a bucket that does not answer writes of derived values until it is opened.
type mute struct {
	Bucket
	opened chan struct{}
	asked  chan string
}

func (m *mute) Put(ctx context.Context, key string, v []byte) error {
	if !strings.Contains(string(v), "made of") {
		return m.Bucket.Put(ctx, key, v)
	}
	select {
	case m.asked <- key:
	default:
	}
	select {
	case <-m.opened:
		return m.Bucket.Put(ctx, key, v)
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	joins = `
nodes:
  make: {func: make}
  stop: {kind: wait_event, depends_on: [make], params: {signal_key: $shared.go}}
  text: {depends_on: [make, stop], prep: {expr: "'made of ' + deps.make.text"}, func: echo}
`
	joined = `"made of long and`
)

func TestOnlyTheTaskWithADerivedValueWaitsForItsObject(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() string) {
		folder, m := t.TempDir(), &mute{opened: make(chan struct{}), asked: make(chan string, 1)}
		e := over(t, store(), folder, func(b Bucket) Bucket { m.Bucket = b; return m })
		require.NoError(t, e.Publish(t.Context(), "joins", []byte(joins)))
		id, err := e.Start(t.Context(), "joins", nil)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			w, err := e.Waiting(t.Context(), id)
			return err == nil && len(w.Waits) == 1 && w.Waits[0].Kind == "signal"
		}, time.Minute, 5*time.Millisecond, "a signal that comes before would be heard at once")
		sent := make(chan error, 1)
		go func() { sent <- e.Signal(t.Context(), id, "go", true) }()
		<-m.asked
		_, other := e.made(t, "make", nil)
		require.EqualValues(t, flow.TaskCompleted, other.Status)
		task, err := e.Task(t.Context(), id)
		require.NoError(t, err)
		require.EqualValues(t, flow.TaskRunning, task.State)
		select {
		case err := <-sent:
			require.Failf(t, "it is heard before the object is there", "%v", err)
		default:
		}
		close(m.opened)
		require.NoError(t, <-sent)
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.EqualValues(t, flow.TaskCompleted, result.Status, result.Error)
		require.Contains(t, string(result.Value), joined)
		require.Len(t, objectsOf(t, folder, id), 2, "what was given back, and what was made of it, which echo gives back as it is")
	})
}

// shut is a bucket that rejects writes of derived values.
type shut struct{ Bucket }

func (s shut) Put(ctx context.Context, key string, v []byte) error {
	if strings.Contains(string(v), "made of") {
		return fmt.Errorf("%s: %w", key, fs.ErrPermission)
	}
	return s.Bucket.Put(ctx, key, v)
}

func TestATaskFailsIfItsDerivedValueCannotBeStored(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() string) {
		folder := t.TempDir()
		e := over(t, store(), folder, func(b Bucket) Bucket { return shut{b} })
		require.NoError(t, e.Publish(t.Context(), "joins",
			[]byte("nodes:\n  make: {func: make}\n  text: {depends_on: [make], prep: {expr: "+
				"\"'made of ' + deps.make.text\"}, func: echo}\n")))
		_, result := e.made(t, "joins", nil)
		require.EqualValues(t, flow.TaskFailed, result.Status)
		require.Contains(t, result.Error, "could not be kept at "+folder)
		require.Contains(t, result.Error, fs.ErrPermission.Error())

		require.NoError(t, e.Publish(t.Context(), "asks",
			[]byte("start: ask\nnodes:\n  ask: {kind: approval, params: {approval_key: $shared.ok}}\n")))
		id, err := e.Start(t.Context(), "asks", nil)
		require.NoError(t, err)
		asked := e.askedOf(t, id)
		_, err = e.AnswerApproval(t.Context(), asked, ApprovalAnswer{Value: json.RawMessage(`"made of ` + strings.Repeat("x", 1000) + `"`)})
		require.ErrorContains(t, err, "could not be kept at "+folder)
		_, err = e.AnswerApproval(t.Context(), asked, ApprovalAnswer{Action: "approved"})
		require.NoError(t, err, "the task goes on")
	})
}

func TestDerivedValuesAreAvailableToTheNextOwner(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() string) {
		cfg := Config{Store: store(), PayloadThreshold: 500, Retention: -1, PayloadStore: "file://" + filepath.ToSlash(t.TempDir())}
		e := making(t, cfg)
		require.NoError(t, e.Publish(t.Context(), "keeps", []byte(`
start: make
nodes:
  make: {exec_type: local_func, func: make, post: {output_map: {word: text}}}
  wait: {kind: wait_event, params: {signal_key: $shared.go}}
  last: {exec_type: local_func, func: echo, prep: {input_map: {word: $shared.word, go: $shared.go}}, post: {output_key: said}}
edges:
  - {from: make, action: default, to: wait}
  - {from: wait, action: default, to: last}
`)))
		id, err := e.Start(t.Context(), "keeps", nil)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			task, err := e.Task(t.Context(), id)
			return err == nil && len(task.WaitingFor) > 0
		}, 20*time.Second, 5*time.Millisecond)
		require.NoError(t, e.Close())
		e = making(t, cfg)
		require.NoError(t, e.Signal(t.Context(), id, "go", true))
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.EqualValues(t, flow.TaskCompleted, result.Status, result.Error)
		require.JSONEq(t, string(must(json.Marshal(map[string]any{"word": long, "go": true,
			"said": map[string]any{"word": long, "go": true}}))), string(result.Value))
	})
}

// A list that is built again is an object of its own.
func TestCompletedWorkIsReusedForAnEqualInput(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() string) {
		cfg := Config{Store: store(), PayloadThreshold: 500, Retention: -1, PayloadStore: "file://" + filepath.ToSlash(t.TempDir())}
		var calls atomic.Int32
		var fails atomic.Bool
		member := func() *Engine {
			e := making(t, cfg)
			e.Handle("list", func(context.Context, Job) (any, error) {
				return map[string]any{"list": []string{long + "0", long + "1", "fails"}}, nil
			})
			e.HandleJSON("each", func(_ context.Context, j Job) (json.RawMessage, error) {
				calls.Add(1)
				if string(j.Input) == `"fails"` && fails.Load() {
					return nil, errors.New("not yet")
				}
				return json.RawMessage("1"), nil
			})
			return e
		}
		e := member()
		require.NoError(t, e.Publish(t.Context(), "each", []byte(`
start: list
nodes:
  list: {exec_type: local_func, func: list, post: {output_key: made}}
  each: {kind: foreach, exec_type: local_func, func: each, prep: {input_key: $shared.made.list}, strategy: continue_all}
edges: [{from: list, action: default, to: each}]
`)))
		fails.Store(true)
		id, result := e.made(t, "each", nil)
		require.EqualValues(t, flow.TaskFailed, result.Status)
		require.EqualValues(t, 3, calls.Load())
		require.NoError(t, e.Close())
		e = member()
		fails.Store(false)
		require.NoError(t, e.Retry(t.Context(), id))
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.EqualValues(t, flow.TaskCompleted, result.Status, result.Error)
		require.EqualValues(t, 4, calls.Load())
	})
}
