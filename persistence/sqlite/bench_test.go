//go:build unix

package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
)

// events is the journal entry of a step, about 400 bytes.
var events = []byte(`[{"kind":"completed","output":"` + string(bytes.Repeat([]byte("x"), 366)) + `"}]`)

func newBench(b *testing.B, tasks int) (persistence.Store, func([]persistence.Commit), []persistence.Commit) {
	s := openAt(b, filepath.Join(b.TempDir(), "troupe.db"))
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	storetest.Publish(b, s, "flow", "version")
	me, err := s.Join(context.Background(), persistence.Joining{Name: "bench", TTL: time.Hour})
	require.NoError(b, err)
	commit := func(batch []persistence.Commit) {
		answers, err := s.Commit(context.Background(), me, batch)
		require.NoError(b, err)
		for _, err := range answers {
			require.NoError(b, err)
		}
	}
	batch := make([]persistence.Commit, tasks)
	for i := range batch {
		batch[i] = persistence.Commit{Task: fmt.Sprintf("task-01985000-0000-7000-8000-%012d", i), Seq: 1, Events: events,
			Create: &persistence.Create{FlowID: "flow", VersionID: "version", Params: events[:200]}}
	}
	commit(batch)
	return s, commit, batch
}

func processors(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCommit writes plain appends in batches. One operation is one commit of one task.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{1, 64, 200, 500} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			_, commit, batch := newBench(b, size)
			before := processors(b)
			b.ResetTimer()
			for done := 0; done < b.N; done += size {
				for i := range batch {
					batch[i].Create, batch[i].Seq = nil, batch[i].Seq+1
				}
				commit(batch)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64((processors(b)-before).Microseconds())/float64(b.N), "cpu-us")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLoad reads tasks of one row, one at a time and many at once.
func BenchmarkLoad(b *testing.B) {
	s, _, batch := newBench(b, 500)
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ids := make([]string, size)
			for n := 0; n < b.N; n += size {
				for i := range ids {
					ids[i] = batch[(n+i)%500].Task
				}
				_, err := s.Load(context.Background(), ids)
				require.NoError(b, err)
			}
		})
	}
}
