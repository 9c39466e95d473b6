package troupe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/member/layers"
	"github.com/troupe-engine/troupe/persistence"
)

// onBoth runs a test on both stores.
func onBoth(t *testing.T, try func(t *testing.T, store func() string)) {
	t.Run("sqlite", func(t *testing.T) {
		try(t, func() string { return "sqlite:" + filepath.Join(t.TempDir(), "x.db") })
	})
	t.Run("postgres", func(t *testing.T) { try(t, func() string { return pgtest.DSN(t) }) })
}

// offloading opens a member that keeps values above the given size in a folder; 0 = all in the
// store.
func offloading(t *testing.T, store string, over int) (e *Engine, folder string) {
	t.Helper()
	cfg := Config{Store: store, PayloadThreshold: over, Retention: -1}
	if folder = t.TempDir(); over > 0 {
		cfg.PayloadStore = "file://" + filepath.ToSlash(folder)
	}
	e, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e, folder
}

// objectsOf returns the files with values of a task.
func objectsOf(t *testing.T, folder, task string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "values", task, "*"))
	require.NoError(t, err)
	return found
}

// making opens a member with a flow of one step, whose output is a large text.
func making(t *testing.T, cfg Config) *Engine {
	t.Helper()
	e, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	e.makes(t)
	return e
}

func (e *Engine) makes(t *testing.T) {
	t.Helper()
	e.Handle("make", func(context.Context, Job) (any, error) { return map[string]string{"text": long}, nil })
	e.Handle("fail", func(_ context.Context, _ Job) (any, error) { return nil, errors.New("no") })
	e.Handle("short", func(context.Context, Job) (any, error) { return "short", nil })
	e.HandleJSON("echo", func(_ context.Context, j Job) (json.RawMessage, error) { return j.Input, nil })
	require.NoError(t, e.Publish(t.Context(), "make",
		[]byte("nodes: {make: {func: make}, echo: {func: echo, depends_on: [make], prep: "+
			"{input_key: $deps.make}}}")))
}

func (e *Engine) made(t *testing.T, flow string, params any) (id string, result *Result) {
	t.Helper()
	id, err := e.Start(t.Context(), flow, params)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err = e.Wait(ctx, id)
	require.NoError(t, err)
	return id, result
}

func TestALostValueIsAnErrorThatNamesIt(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() string) {
		for name, spoil := range map[string]func(file string) error{
			"is gone":                 os.Remove,
			"is not what was written": func(file string) error { return os.WriteFile(file, []byte(strings.Repeat("x", 10)), 0o600) },
		} {
			t.Run(name, func(t *testing.T) {
				cfg := Config{Store: store(), PayloadThreshold: 500,
					PayloadStore: "file://" + filepath.ToSlash(t.TempDir()), Listen: freeAddress(t)}
				folder := strings.TrimPrefix(cfg.PayloadStore, "file://")
				e, err := Open(t.Context(), cfg)
				require.NoError(t, err)
				e.makes(t)
				require.NoError(t, e.Publish(t.Context(), "later", []byte(`
nodes:
  make: {func: make}
  stop: {kind: wait_event, depends_on: [make], params: {signal_key: $shared.go}}
  look: {depends_on: [make, stop], when: {expr: "deps.make.text != ''"}, func: echo}
  take: {depends_on: [make, stop], func: echo}
`)))
				id, err := e.Start(t.Context(), "later", nil)
				require.NoError(t, err)
				require.Eventually(t, func() bool { return len(objectsOf(t, folder, id)) == 1 }, 20*time.Second, 5*time.Millisecond)
				require.NoError(t, e.Close())
				file := objectsOf(t, folder, id)[0]
				require.NoError(t, spoil(file))
				e = serving(t, cfg)
				e.makes(t)
				require.NoError(t, e.Signal(t.Context(), id, "go", true))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = e.Member(ctx)
				require.NoError(t, err)
				require.NoError(t, e.awaitTask(ctx, id))
				task, err := e.Task(t.Context(), id)
				require.NoError(t, err)
				require.EqualValues(t, flow.TaskFailed, task.State)
				for _, word := range []string{filepath.Base(file), id, file, name} {
					require.Contains(t, task.Error, word)
				}
				_, err = e.Value(t.Context(), id, "output", ValueQuery{Step: "make"})
				require.ErrorContains(t, err, filepath.Base(file))
				require.ErrorContains(t, err, name)
				_, err = e.Steps(t.Context(), id, StepQuery{})
				require.ErrorContains(t, err, filepath.Base(file))
				status, _, text := e.get(t, "/v1/tasks/"+id+"/steps?values=preview", "")
				require.Equal(t, http.StatusOK, status, text)
			})
		}
	})
}

// get sends a request to a served member.
func (e *Engine) get(t *testing.T, path, span string) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+e.cfg.Listen+path, nil)
	require.NoError(t, err)
	req.Header.Set("Accept-Encoding", "identity")
	if span != "" {
		req.Header.Set("Range", span)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, string(text)
}

func TestAPartOfALargeValueIsRead(t *testing.T) {
	e := serving(t, Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db"), PayloadThreshold: 500,
		PayloadStore: "file://" + filepath.ToSlash(t.TempDir())})
	e.makes(t)
	id, _ := e.made(t, "make", nil)
	path := "/v1/tasks/" + id + "/value?of=output&step=make"
	status, header, whole := e.get(t, path, "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, string(must(json.Marshal(map[string]string{"text": long}))), whole)
	require.Equal(t, fmt.Sprint(len(whole)), header.Get("Content-Length"))
	status, header, text := e.get(t, path, "bytes=100-199")
	require.Equal(t, http.StatusPartialContent, status)
	require.Equal(t, fmt.Sprintf("bytes 100-199/%d", len(whole)), header.Get("Content-Range"))
	require.Equal(t, whole[100:200], text)
	_, _, text = e.get(t, path+"&pointer=/text", "bytes=-20")
	require.Equal(t, whole[len(whole)-21:len(whole)-1], text)
	_, _, text = e.get(t, "/v1/tasks/"+id+"/steps?values=preview", "")
	var page struct {
		Items []struct {
			Output struct {
				Bytes   int    `json:"bytes"`
				Preview string `json:"preview"`
			} `json:"output"`
		} `json:"items"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &page))
	require.Equal(t, len(whole), page.Items[0].Output.Bytes)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestValuesAreDeletedWithTheLastTaskThatRefersToThem(t *testing.T) {
	storeTimes.Unheld = 0
	defer func() { storeTimes = layers.DefaultTimes() }()
	onBoth(t, func(t *testing.T, store func() string) {
		e, folder := offloading(t, store(), 500)
		e.makes(t)
		require.NoError(t, e.Publish(t.Context(), "two",
			[]byte("nodes: {make: {func: make}, more: {func: echo, depends_on: [make], prep: "+
				"{input_map: {again: $deps.make, run: $run.text}}}}")))
		first, _ := e.made(t, "two", map[string]string{"text": long + "!"})
		require.Len(t, objectsOf(t, folder, first), 3, "params and two outputs")
		forked, err := e.Fork(t.Context(), first, Fork{From: "more"})
		require.NoError(t, err)
		_, err = e.Wait(t.Context(), forked.ID)
		require.NoError(t, err)
		require.Len(t, objectsOf(t, folder, forked.ID), 1, "it shares the rest")

		e.deletes(t, first)
		require.Len(t, objectsOf(t, folder, first), 2, "what only the first task referred to is gone")
		result, err := e.Wait(t.Context(), forked.ID)
		require.NoError(t, err)
		require.Contains(t, string(result.Value), "again")
		grandchild, err := e.Fork(t.Context(), forked.ID, Fork{From: "more"})
		require.NoError(t, err)
		_, err = e.Wait(t.Context(), grandchild.ID)
		require.NoError(t, err)
		again, err := e.Rerun(t.Context(), grandchild.ID, Rerun{})
		require.NoError(t, err)
		result, err = e.Wait(t.Context(), again.ID)
		require.NoError(t, err)
		require.Contains(t, string(result.Value), "long and")
		require.Len(t, objectsOf(t, folder, again.ID), 2, "it shares the params")

		e.deletes(t, forked.ID)
		require.Empty(t, objectsOf(t, folder, forked.ID))
		require.Len(t, objectsOf(t, folder, first), 2)
		e.deletes(t, grandchild.ID)
		require.Len(t, objectsOf(t, folder, first), 1, "the params, which the rerun has")
		e.deletes(t, again.ID)
		folders, err := os.ReadDir(filepath.Join(folder, "values"))
		require.NoError(t, err)
		require.Empty(t, folders)
	})
}

// deletes deletes the task that ended first, like the retention does.
func (e *Engine) deletes(t *testing.T, id string) {
	t.Helper()
	n, err := e.stores.Newest.DeleteEnded(t.Context(), time.Now().Add(time.Minute).UnixMilli(), 1)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = e.stores.Newest.Task(t.Context(), id)
	require.ErrorIs(t, err, persistence.ErrNotFound)
	_, err = e.stores.Values.Sweep(t.Context(), time.Now().Add(time.Second).UnixMilli())
	require.NoError(t, err)
}

func TestUnreferencedValuesAreSwept(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() string) {
		e, folder := offloading(t, store(), 500)
		e.makes(t)
		id, result := e.made(t, "make", nil)
		lost, err := e.stores.Payloads.Keep(t.Context(), "task-that-never-began", must(json.Marshal(long)))
		require.NoError(t, err)
		require.True(t, e.stores.Payloads.Refers(lost))
		_, err = e.stores.Values.Sweep(t.Context(), time.Now().Add(-time.Minute).UnixMilli())
		require.NoError(t, err)
		require.Len(t, objectsOf(t, folder, "task-that-never-began"), 1, "whoever has written it may be about to store that")
		_, err = e.stores.Values.Sweep(t.Context(), time.Now().Add(time.Minute).UnixMilli())
		require.NoError(t, err)
		require.NoDirExists(t, filepath.Join(folder, "values", "task-that-never-began"))
		again, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, result, again)
	})
}

// holding is a bucket that stops answering after it has written an object.
type holding struct {
	Bucket
	written chan string
	goes    chan struct{}
	held    atomic.Bool
}

func (h *holding) Put(ctx context.Context, key string, value []byte) error {
	err := h.Bucket.Put(ctx, key, value)
	if h.held.CompareAndSwap(false, true) {
		h.written <- key
		<-h.goes
	}
	return err
}

func TestAValueSurvivesTheLossOfItsMemberBeforeTheCommit(t *testing.T) {
	store, folder := pgtest.DSN(t), t.TempDir()
	h := &holding{written: make(chan string, 1), goes: make(chan struct{})}
	e := making(t, Config{Store: store, PayloadThreshold: 500,
		PayloadStore: "held://" + filepath.ToSlash(folder),
		Buckets: map[string]OpenBucket{"held": func(_ context.Context, at *url.URL) (Bucket, error) {
			dir, err := objects.OpenDir(at.Path)
			h.Bucket = dir
			return h, err
		}}})
	id, err := e.Start(t.Context(), "make", nil)
	require.NoError(t, err)
	<-h.written
	require.Len(t, objectsOf(t, folder, id), 1)
	fence(t, store, e.incarnation())
	close(h.goes)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := e.Wait(ctx, id)
	require.NoError(t, err)
	require.EqualValues(t, flow.TaskCompleted, result.Status, result.Error)
	require.Contains(t, string(result.Value), "long and")
}

func TestMembersShareThePayloadStore(t *testing.T) {
	store, folder := pgtest.DSN(t), t.TempDir()
	cfg := Config{Store: store, PayloadThreshold: 500, PayloadStore: "file://" + filepath.ToSlash(folder)}
	cfg.Name = "a"
	a := join(t, cfg)
	cfg.Name = "b"
	b := join(t, cfg)
	a.makes(t)
	b.makes(t)
	shared(t, a, b)
	for i := range 16 {
		e, other := a, b
		if i%2 == 1 {
			e, other = b, a
		}
		id, result := e.made(t, "make", map[string]any{"text": long, "i": i})
		require.EqualValues(t, flow.TaskCompleted, result.Status, result.Error)
		seen, err := other.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, string(result.Value), string(seen.Value))
		require.NotEmpty(t, objectsOf(t, folder, id))
	}
}

func TestSettingsOfLargeValuesAreChecked(t *testing.T) {
	for text, cfg := range map[string]Config{
		"must not be negative":                              {PayloadThreshold: -1, PayloadStore: "file:///tmp/x"},
		"set --payload-store":                               {PayloadThreshold: 1},
		"gs: URLs are not in this binary: use troupe-cloud": {PayloadStore: "gs://bucket"},
	} {
		cfg.Store = "sqlite:" + filepath.Join(t.TempDir(), "x.db")
		_, err := Open(t.Context(), cfg)
		require.ErrorContains(t, err, text)
	}
}
