package troupe

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/member/layers"
	"github.com/troupe-engine/troupe/persistence"
)

func fileURL(folder string) string { return "file://" + filepath.ToSlash(folder) }

func TestAMemberWithoutThePayloadStoreIsRejected(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() string) {
		at, folder := store(), t.TempDir()
		cfg := Config{Store: at, PayloadThreshold: 500, Retention: -1, PayloadStore: fileURL(folder)}
		e := making(t, cfg)
		id, result := e.made(t, "make", nil)
		require.NoError(t, e.Close())

		without, err := Open(t.Context(), Config{Store: at})
		require.NoError(t, err)
		_, err = without.Member(t.Context())
		require.ErrorIs(t, err, persistence.ErrPlace)
		require.ErrorContains(t, err, fileURL(folder))
		require.ErrorContains(t, err, "--payload-store")
		_, err = without.Task(t.Context(), id)
		require.ErrorIs(t, err, persistence.ErrPlace, "nobody gets a reference for a value")
		require.NoError(t, without.Close())

		elsewhere := cfg
		other := t.TempDir()
		elsewhere.PayloadStore = fileURL(other)
		_, err = Open(t.Context(), elsewhere)
		require.ErrorContains(t, err, fileURL(other)+" is not where the large values of this store are: those are at "+fileURL(folder))
		left, err := os.ReadDir(other)
		require.NoError(t, err)
		require.Empty(t, left, "asked again it is the same")

		require.NoError(t, os.CopyFS(other, os.DirFS(folder)))
		require.NoError(t, os.RemoveAll(folder))
		e = making(t, elsewhere)
		again, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, string(result.Value), string(again.Value), "values that have been moved are found")
	})
}

func TestStoresDoNotMixUpTheirValues(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() string) {
		folder := t.TempDir()
		cfg := Config{Store: store(), PayloadStore: fileURL(folder)}
		require.NoError(t, making(t, cfg).Close())
		cfg.Store = store()
		_, err := Open(t.Context(), cfg)
		require.ErrorContains(t, err, "large values of another store")
		cfg.PayloadStore += "/other"
		require.NoError(t, making(t, cfg).Close())
	})
}

func TestMembersRejectAPayloadStoreThatOthersCannotRead(t *testing.T) {
	store, folder := pgtest.DSN(t), t.TempDir()
	plain := making(t, Config{Store: store, Name: "plain"})
	_, err := plain.Member(t.Context())
	require.NoError(t, err)
	e, err := Open(t.Context(), Config{Store: store, Name: "first", PayloadStore: fileURL(folder)})
	require.NoError(t, err)
	_, err = e.Member(t.Context())
	require.ErrorIs(t, err, persistence.ErrPlace)
	require.ErrorContains(t, err, "stop all members first")
	require.NoError(t, e.Close())
	require.NoError(t, plain.Close())
	_, err = making(t, Config{Store: store, Name: "first", PayloadStore: fileURL(folder)}).Member(t.Context())
	require.NoError(t, err)
}

func TestThePlaceOfValuesIsShownWithoutSecrets(t *testing.T) {
	folder := t.TempDir()
	dir, err := objects.OpenDir(folder)
	require.NoError(t, err)
	cfg := Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db"),
		PayloadStore: "other://me:secret@host" + filepath.ToSlash(folder) + "?token=secret",
		Buckets:      map[string]OpenBucket{"other": opens(dir)}}
	e := making(t, cfg)
	_, err = e.Member(t.Context())
	require.NoError(t, err)
	at, err := e.stores.Newest.ValuesAt(t.Context())
	require.NoError(t, err)
	require.Equal(t, "other://host"+filepath.ToSlash(folder), at)
	_, err = dir.Get(t.Context(), "values-of", 1000)
	require.NoError(t, err)
}

// opens returns an opener that always returns the same bucket.
func opens(b Bucket) OpenBucket {
	return func(context.Context, *url.URL) (Bucket, error) { return b, nil }
}

// gone is a bucket that cannot be reached.
type gone struct{ Bucket }

func (gone) Get(context.Context, string, int) ([]byte, error) {
	return nil, errors.New("there is no way to the host")
}

func TestAMemberStartsWhileItsPayloadStoreDoesNotAnswer(t *testing.T) {
	storeTimes.Settle = 50 * time.Millisecond
	defer func() { storeTimes = layers.DefaultTimes() }()
	onBoth(t, func(t *testing.T, store func() string) {
		dir, err := objects.OpenDir(t.TempDir())
		require.NoError(t, err)
		cfg := Config{Store: store(), PayloadThreshold: 500, PayloadStore: "other://host/values",
			Buckets: map[string]OpenBucket{"other": opens(dir)}}
		e := making(t, cfg)
		_, err = e.Member(t.Context())
		require.NoError(t, err)
		require.NoError(t, e.Close())
		cfg.Buckets = map[string]OpenBucket{"other": opens(gone{dir})}
		e = making(t, cfg)
		require.NoError(t, e.Publish(t.Context(), "short", []byte("nodes: {short: {func: short}}")))
		_, result := e.made(t, "short", nil)
		require.EqualValues(t, flow.TaskCompleted, result.Status, result.Error)
	})
}
