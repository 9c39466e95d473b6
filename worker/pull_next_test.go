package worker_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

// bringing acknowledges one report, and brings jobs.
func bringing(jobs ...wire.ClaimedJob) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		_ = json.NewEncoder(w).Encode(wire.JobReportResults{Items: make([]wire.JobReportResult, 1), Jobs: jobs})
	}
}

func TestTheNextJobComesWithTheAnswerToAResult(t *testing.T) {
	e := newEngine(t)
	e.first("reports", bringing(job("2", "s")), bringing(job("3", "s")))
	cfg := config(e)
	cfg.Concurrency, cfg.Labels = 1, []string{"gpu"}
	w := worker.New(cfg)
	var polls atomic.Int64
	w.Handle("s", func(_ context.Context, j worker.Job) (any, error) {
		polls.Store(int64(len(e.polls)))
		return j.ID, nil
	})
	run(t, w)
	e.queue <- job("1", "s")
	for _, id := range []string{"1", "2", "3"} {
		require.Equal(t, `"`+id+`"`, string((<-e.completed).Output))
		require.Equal(t, &wire.JobRequest{Services: []string{"s"}, Labels: []string{"gpu"}, Max: 1}, <-e.next)
	}
	require.EqualValues(t, 1, polls.Load(), "nobody polled while the slot went from one job to the next")
	e.queue <- job("4", "s")
	require.Equal(t, "4", (<-e.completed).Job, "then it is free again")
}

// An answer should bring no more jobs than requested, and a report that must be sent again keeps
// its slot.
func TestJobsWithoutASlotWaitForOne(t *testing.T) {
	for name, answer := range map[string]wire.JobReportResults{
		"more than asked for":        {Items: make([]wire.JobReportResult, 1)},
		"for a refused one":          {Items: []wire.JobReportResult{{Problem: &wire.Problem{Status: 409, Detail: "no"}}}},
		"for one that is sent again": {Items: []wire.JobReportResult{{Problem: &wire.Problem{Status: 413, Detail: "no"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			answer.Jobs = []wire.ClaimedJob{job("2", "s"), job("3", "s")}
			e.first("reports", func(w http.ResponseWriter) { _ = json.NewEncoder(w).Encode(answer) })
			cfg := config(e)
			cfg.Concurrency, cfg.Wait = 1, 20*time.Millisecond // a poll holds a slot while it waits
			w := worker.New(cfg)
			var at, most atomic.Int64
			w.Handle("s", func(context.Context, worker.Job) (any, error) {
				most.Store(max(most.Load(), at.Add(1)))
				at.Add(-1)
				return nil, nil
			})
			run(t, w)
			e.queue <- job("1", "s")
			for ended := map[string]bool{}; len(ended) < 3; {
				ended[(<-e.completed).Job] = true
			}
			require.EqualValues(t, 1, most.Load())
			e.queue <- job("4", "s")
			for (<-e.completed).Job != "4" { // otherwise a slot would be lost
			}
		})
	}
}

func TestAJobThatComesWhileTheWorkerLeavesIsGivenBack(t *testing.T) {
	e := newEngine(t)
	asked, left := make(chan struct{}), make(chan struct{})
	e.first("reports", func(w http.ResponseWriter) {
		close(asked)
		<-left
		bringing(job("2", "s"))(w)
	})
	begun, leave, cancel, ended := runUntilLeave(t, config(e))
	e.queue <- job("1", "s")
	<-begun
	close(leave)
	<-asked
	cancel()
	close(left)
	require.NoError(t, <-ended)
	require.Equal(t, "1", (<-e.completed).Job)
	require.Equal(t, []wire.HeldJob{{Job: "2", Token: "tok-2"}}, (<-e.released).Claims)
	require.Empty(t, e.completed)
}
