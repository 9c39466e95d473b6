package troupe

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
)

// fading is a bucket whose objects disappear after the given number of parts was read.
type fading struct {
	Bucket
	parts *atomic.Int64
}

func (b fading) Range(ctx context.Context, key string, from int64, most int) ([]byte, error) {
	if b.parts.Add(-1) < 0 {
		return nil, &fs.PathError{Op: "open", Path: key, Err: fs.ErrNotExist}
	}
	return b.Bucket.Range(ctx, key, from, most)
}

func (b fading) Get(ctx context.Context, key string, most int) ([]byte, error) {
	if strings.HasPrefix(key, "values/") && b.parts.Load() < 100 {
		return nil, &fs.PathError{Op: "open", Path: key, Err: fs.ErrNotExist}
	}
	return b.Bucket.Get(ctx, key, most)
}

func TestAnAnswerWithALostLargeValueDoesNotLookComplete(t *testing.T) {
	var parts atomic.Int64
	parts.Store(1 << 40)
	e := serving(t, Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db"), PayloadThreshold: 500,
		PayloadStore: "fading://" + filepath.ToSlash(t.TempDir()),
		Limits:       flow.Limits{Value: 8 << 20},
		Buckets: map[string]OpenBucket{"fading": func(_ context.Context, at *url.URL) (Bucket, error) {
			dir, err := objects.OpenDir(at.Path)
			return fading{dir, &parts}, err
		}}})
	e.Handle("huge", func(context.Context, Job) (any, error) { return strings.Repeat("x", 5<<20), nil })
	require.NoError(t, e.Publish(t.Context(), "huge", []byte("nodes: {make: {func: huge}}")))
	id, result := e.made(t, "huge", nil)
	require.Equal(t, "completed", string(result.Status), result.Error)
	const checked = 6 // number of 1 MiB parts that are checked first
	for _, path := range []string{"/value?of=output&step=make", "/steps"} {
		for _, coding := range []string{"identity", "gzip"} {
			t.Run(fmt.Sprint(path, " ", coding), func(t *testing.T) {
				parts.Store(checked + 2)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+e.cfg.Listen+"/v1/tasks/"+id+path, nil)
				require.NoError(t, err)
				req.Header.Set("Accept-Encoding", coding)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return // the answer broke off before it started
				}
				defer resp.Body.Close()
				require.Equal(t, http.StatusOK, resp.StatusCode)
				_, err = io.Copy(io.Discard, resp.Body)
				require.Error(t, err)
			})
		}
	}
}
