// Package bucketest is the contract of buckets as a test suite that every implementation runs.
package bucketest

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/objects"
)

// Run holds buckets to the contract. Each that is opened is empty.
func Run(t *testing.T, open func(t *testing.T) objects.Bucket) {
	for name, check := range map[string]func(*testing.T, objects.Bucket){
		"what was written is read":                      testWrite,
		"what is not there is not":                      testMissing,
		"a new one takes the place of the old one":      testReplace,
		"what is to be new is not written over another": testCreateOnce,
		"of many who create one, one does":              testCreateRace,
		"only so much is read":                          testBoundedGet,
		"a part is read":                                testRange,
		"a list has what is below a prefix":             testList,
		"the folders below a prefix are told":           testFolders,
		"one that is removed is gone alone":             testRemove,
		"a deleted prefix is gone with all below":       testDelete,
		"what is written meanwhile may be deleted, too": deletedMeanwhile,
		"nobody reads a half":                           testAtomicPut,
		"whose time is over does nothing":               testCanceled,
		"an address tells objects apart":                testAddresses,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

const plenty = 1 << 20

func putObject(t *testing.T, b objects.Bucket, key, value string) {
	require.NoError(t, b.Put(t.Context(), key, []byte(value)))
}

func requireValue(t *testing.T, b objects.Bucket, key, want string) {
	got, err := b.Get(t.Context(), key, plenty)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func testWrite(t *testing.T, b objects.Bucket) {
	putObject(t, b, "a/b/c.json", "1")
	putObject(t, b, "a/empty", "")
	requireValue(t, b, "a/b/c.json", "1")
	requireValue(t, b, "a/empty", "")
}

func testMissing(t *testing.T, b objects.Bucket) {
	putObject(t, b, "file", "1")
	for _, key := range []string{"a", "a/b", "runs/x/y", "file/below"} {
		_, err := b.Get(t.Context(), key, plenty)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	list, err := b.List(t.Context(), "runs/")
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, b.Delete(t.Context(), "runs/x/"))
}

func testReplace(t *testing.T, b objects.Bucket) {
	putObject(t, b, "a/b", "long text")
	putObject(t, b, "a/b", "x")
	requireValue(t, b, "a/b", "x")
}

func testCreateOnce(t *testing.T, b objects.Bucket) {
	require.NoError(t, b.Create(t.Context(), "a/b", []byte("first")))
	require.ErrorIs(t, b.Create(t.Context(), "a/b", []byte("second")), fs.ErrExist)
	requireValue(t, b, "a/b", "first")
}

func testCreateRace(t *testing.T, b objects.Bucket) {
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { errs[i] = b.Create(t.Context(), "a/b", fmt.Append(nil, i)) })
	}
	all.Wait()
	first := slices.Index(errs, nil)
	require.GreaterOrEqual(t, first, 0)
	requireValue(t, b, "a/b", fmt.Sprint(first))
	for i, err := range errs {
		if i != first {
			require.ErrorIs(t, err, fs.ErrExist)
		}
	}
}

func testBoundedGet(t *testing.T, b objects.Bucket) {
	putObject(t, b, "a", "0123456789")
	for most, want := range map[int]string{3: "0123", 9: "0123456789", 10: "0123456789"} {
		got, err := b.Get(t.Context(), "a", most)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

func testRange(t *testing.T, b objects.Bucket) {
	putObject(t, b, "a", "0123456789")
	for _, tt := range []struct {
		from int64
		most int
		want string
	}{{0, 3, "012"}, {4, 3, "456"}, {8, 9, "89"}, {0, 10, "0123456789"}, {10, 5, ""}, {3, 0, ""}} {
		got, err := b.Range(t.Context(), "a", tt.from, tt.most)
		require.NoError(t, err, "%d %d", tt.from, tt.most)
		require.Equal(t, tt.want, string(got), "%d %d", tt.from, tt.most)
	}
	_, err := b.Range(t.Context(), "b", 0, 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func testFolders(t *testing.T, b objects.Bucket) {
	names, err := b.Folders(t.Context(), "values/")
	require.NoError(t, err)
	require.Empty(t, names)
	for _, key := range []string{"values/a/1", "values/a/2", "values/b/c/3", "values/file", "others/d/4"} {
		putObject(t, b, key, key)
	}
	names, err = b.Folders(t.Context(), "values/")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b"}, names)
}

func testRemove(t *testing.T, b objects.Bucket) {
	putObject(t, b, "a/1", "1")
	putObject(t, b, "a/11", "stays")
	require.NoError(t, b.Remove(t.Context(), "a/1"))
	_, err := b.Get(t.Context(), "a/1", plenty)
	require.ErrorIs(t, err, fs.ErrNotExist)
	requireValue(t, b, "a/11", "stays")
	require.NoError(t, b.Remove(t.Context(), "a/1"))
	require.NoError(t, b.Remove(t.Context(), "c/1"))
}

func testList(t *testing.T, b objects.Bucket) {
	keys := []string{"runs/r/1/spec.json", "runs/r/1/status.json", "runs/r/2/spec.json"}
	for _, key := range append(keys, "runs/rr/1/spec.json", "other") {
		putObject(t, b, key, key)
	}
	list, err := b.List(t.Context(), "runs/r/")
	require.NoError(t, err)
	got, before := []string{}, map[string]string{}
	for _, o := range list {
		got, before[o.Key] = append(got, o.Key), o.Version
		require.WithinDuration(t, time.Now(), o.Written, time.Minute)
	}
	slices.Sort(got)
	require.Equal(t, keys, got)
	putObject(t, b, keys[0], "another")
	list, err = b.List(t.Context(), "runs/r/")
	require.NoError(t, err)
	for _, o := range list {
		changed := o.Version == "" || o.Version != before[o.Key]
		require.True(t, changed || o.Key != keys[0], "a version changes with every write")
	}
}

func testDelete(t *testing.T, b objects.Bucket) {
	putObject(t, b, "runs/r/1/spec.json", "1")
	putObject(t, b, "runs/r/2/deep/er", "1")
	putObject(t, b, "runs/rr/1", "stays")
	require.NoError(t, b.Delete(t.Context(), "runs/r/"))
	list, err := b.List(t.Context(), "runs/")
	require.NoError(t, err)
	require.Len(t, list, 1)
	requireValue(t, b, "runs/rr/1", "stays")
}

func deletedMeanwhile(t *testing.T, b objects.Bucket) {
	over := make(chan struct{})
	go func() { // ends with its last write
		defer close(over)
		for i := range 60 {
			_ = b.Put(context.WithoutCancel(t.Context()), fmt.Sprintf("runs/r/%d/spec.json", i%7), nil) // its folder may just have gone
		}
	}()
	for {
		require.NoError(t, b.Delete(t.Context(), "runs/r/"))
		select {
		case <-over:
			return
		default:
		}
	}
}

func testAtomicPut(t *testing.T, b objects.Bucket) {
	texts := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 200_000)}
	putObject(t, b, "a", texts[0])
	over := make(chan error, 1)
	go func() { // ends with its last write
		var err error
		for i := 0; i < 30 && err == nil; i++ {
			err = b.Put(context.WithoutCancel(t.Context()), "a", []byte(texts[i%2]))
		}
		over <- err
	}()
	for {
		got, err := b.Get(t.Context(), "a", plenty)
		require.NoError(t, err)
		require.Contains(t, texts, string(got))
		select {
		case err := <-over:
			require.NoError(t, err)
			return
		default:
		}
	}
}

func testCanceled(t *testing.T, b objects.Bucket) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Put(ctx, "a", nil), context.Canceled)
	_, err := b.Get(ctx, "a", 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.Get(t.Context(), "a", 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func testAddresses(t *testing.T, b objects.Bucket) {
	require.NotEqual(t, b.Address("runs/a/spec.json"), b.Address("runs/b/spec.json"))
	require.Contains(t, b.Address("runs/a/spec.json"), "spec.json")
}
