package bucket_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/cloud/bucket"
	"github.com/troupe-engine/troupe/cloud/internal/fakes"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/internal/testing/bucketest"
)

// clouds returns functions that create a bucket of each cloud and return its URL.
func clouds(t *testing.T) map[string]func(t *testing.T) string {
	t.Helper()
	all, err := fakes.NewBuckets()
	require.NoError(t, err)
	t.Cleanup(all.Close)
	for name, value := range all.Env {
		t.Setenv(name, value)
	}
	made := map[string]func(t *testing.T) string{
		"file": func(t *testing.T) string { return "file://" + filepath.ToSlash(t.TempDir()) },
		"mem":  func(*testing.T) string { return "mem://" },
	}
	for _, kind := range []string{"gs", "s3", "azblob"} {
		made[kind] = func(t *testing.T) string {
			at, err := all.Make(kind)
			require.NoError(t, err)
			return at
		}
	}
	return made
}

func open(t *testing.T, at string) objects.Bucket {
	t.Helper()
	b, err := objects.Open(t.Context(), at, bucket.Openers())
	require.NoError(t, err)
	return b
}

func TestBucketsOfCloudsDoWhatFoldersDo(t *testing.T) {
	for name, made := range clouds(t) {
		t.Run(name, func(t *testing.T) {
			bucketest.Run(t, func(t *testing.T) objects.Bucket { return open(t, made(t)) })
		})
	}
}

func TestPrefixesOfABucketKnowNothingOfEachOther(t *testing.T) {
	at := clouds(t)["s3"](t)
	one, other := open(t, at), open(t, strings.Replace(at, "/some/where", "/else", 1))
	require.NoError(t, one.Put(t.Context(), "a", []byte("1")))
	require.NoError(t, other.Put(t.Context(), "a", []byte("2")))
	got, err := one.Get(t.Context(), "a", 10)
	require.NoError(t, err)
	require.Equal(t, "1", string(got))
	require.Contains(t, one.Address("a"), "/some/where/a")
	require.NotContains(t, one.Address("a"), "?")
}

func TestLargeValuesAreStoredInBuckets(t *testing.T) {
	for name, made := range clouds(t) {
		t.Run(name, func(t *testing.T) {
			b := open(t, made(t))
			store := func() *payload.Store {
				return payload.New(payload.Options{Bucket: b, Secret: "s", Over: 1000, Most: 64 << 20})
			}
			value, err := json.Marshal(strings.Repeat("0123456789", 300_000))
			require.NoError(t, err)
			ref, err := store().Keep(t.Context(), "task-1", value)
			require.NoError(t, err)
			got, err := store().Open(ref)
			require.NoError(t, err)
			require.Equal(t, string(value), string(got))
			r := store().Reader(t.Context(), ref)
			require.NoError(t, r.Check())
			part := make([]byte, 7)
			_, err = r.Seek(2_000_001, 0)
			require.NoError(t, err)
			_, err = r.Read(part)
			require.NoError(t, err)
			require.Equal(t, "0123456", string(part))
			require.NoError(t, b.Delete(t.Context(), payload.Folder("task-1")))
			_, err = store().Open(ref)
			require.ErrorContains(t, err, "is gone; it was at "+b.Address(payload.Folder("task-1")))
		})
	}
}

func TestTasksKeepLargeValuesAndFilesInBuckets(t *testing.T) {
	for name, made := range clouds(t) {
		t.Run(name, func(t *testing.T) {
			at := made(t)
			long := strings.Repeat("long ", 1000)
			e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(
				t.TempDir(), "x.db"), PayloadStore: at, PayloadThreshold: 1000, ObjectStore: at,
				Buckets: bucket.Openers()})
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			e.Handle("make", func(context.Context, troupe.Job) (any, error) { return long, nil })
			e.Handle("length", func(_ context.Context, j troupe.Job) (any, error) {
				var text string
				err := json.Unmarshal(j.Input, &text)
				return len(text), err
			})
			require.NoError(t, e.Publish(t.Context(), "f",
				[]byte("nodes: {a: {func: make}, b: {func: length, depends_on: [a], prep: "+
					"{input_key: $deps.a}}, c: {exec_type: external, service: object_store, "+
					"depends_on: [b]}}")))
			id, err := e.Start(t.Context(), "f", nil)
			require.NoError(t, err)
			if name != "mem" { // every opened mem bucket is a new one
				work(t, open(t, at), id)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				result, err := e.Wait(ctx, id)
				require.NoError(t, err)
				require.JSONEq(t, `{"c": "done"}`, string(result.Value), result.Error)
			}
			require.Eventually(t, func() bool {
				got, err := e.Value(t.Context(), id, "output", troupe.ValueQuery{Step: "b"})
				return err == nil && string(got) == "5000"
			}, 30*time.Second, 10*time.Millisecond)
			got, err := e.Value(t.Context(), id, "output", troupe.ValueQuery{Step: "a"})
			require.NoError(t, err)
			require.JSONEq(t, string(mustJSON(t, long)), string(got))
		})
	}
}

// work carries out the attempt of a task that waits for files.
func work(t *testing.T, b objects.Bucket, task string) {
	t.Helper()
	folder := ""
	require.Eventually(t, func() bool {
		list, err := b.List(t.Context(), objects.RunFolder(task))
		for _, o := range list {
			if found, ok := strings.CutSuffix(o.Key, objects.SpecFile); ok {
				folder = found
			}
		}
		return err == nil && folder != ""
	}, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, b.Put(t.Context(), folder+objects.OutputFile, []byte(`"done"`)))
	require.NoError(t, b.Put(t.Context(), folder+objects.StatusFile, []byte(`{"status": "success"}`)))
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}
