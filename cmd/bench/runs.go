//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// atOnce is the number of concurrent requests.
const atOnce = 100

// orkRun is a run in the format of Ork's routes.
type orkRun struct {
	Run struct {
		ID        string    `json:"id"`
		Status    string    `json:"status"`
		CreatedAt time.Time `json:"created_at"`
	} `json:"run"`
	Tasks []struct {
		Name       string    `json:"name"`
		Status     string    `json:"status"`
		Error      string    `json:"error"`
		StartedAt  time.Time `json:"started_at"`
		FinishedAt time.Time `json:"finished_at"`
	} `json:"tasks"`
}

// roundResult is the result of runs that started together.
type roundResult struct {
	tasksPerS float64         // from the first request to the end of the last task
	runsPerS  float64         // rate of accepted starts
	durations []time.Duration // durations of tasks, from the creation of their run to their end
	together  int             // maximal number of concurrently running tasks
}

// runRound starts runs of a flow and waits until all runs have ended. A failed task is an error.
func (b *benchRun) runRound(s *servedMember, flow string, runs int) (*roundResult, error) {
	ids := make([]string, runs)
	body := fmt.Appendf(nil, `{"workflow": %q}`, flow)
	began := time.Now()
	err := b.forEach(runs, min(runs, atOnce), func(i int) error {
		var started struct {
			RunID string `json:"run_id"`
		}
		err := s.sendRequest(b.ctx, http.MethodPost, "/runs", "application/json", body, &started)
		ids[i] = started.RunID
		return err
	})
	if err != nil {
		return nil, err
	}
	r := &roundResult{runsPerS: float64(runs) / time.Since(began).Seconds()}
	if err := s.awaitSettled(b.ctx, flow); err != nil {
		return nil, err
	}
	all := make([]orkRun, runs)
	if err := b.forEach(runs, 8, func(i int) error { return s.getJSON(b.ctx, "/runs/"+ids[i], &all[i]) }); err != nil {
		return nil, err
	}
	return r, r.fillRound(began, all)
}

// awaitSettled waits until no run of a flow is running.
func (s *servedMember) awaitSettled(ctx context.Context, flow string) error {
	for _, status := range []string{"pending", "running"} {
		for {
			var page struct {
				Total int `json:"total"`
			}
			if err := s.getJSON(ctx, "/runs?limit=1&workflow="+flow+"&status="+status, &page); err != nil {
				return err
			}
			if page.Total == 0 {
				break
			}
			time.Sleep(250 * time.Millisecond)
		}
	}
	return nil
}

func (r *roundResult) fillRound(began time.Time, all []orkRun) error {
	var last time.Time
	var spans []taskSpan
	for _, run := range all {
		for _, t := range run.Tasks {
			if t.Status != "success" {
				return fmt.Errorf("task %s of run %s ended %s: %s", t.Name, run.Run.ID, t.Status, t.Error)
			}
			r.durations = append(r.durations, t.FinishedAt.Sub(run.Run.CreatedAt))
			spans = append(spans, taskSpan{t.StartedAt, t.FinishedAt})
			if t.FinishedAt.After(last) {
				last = t.FinishedAt
			}
		}
	}
	r.tasksPerS = float64(len(spans)) / last.Sub(began).Seconds()
	r.together = maxOverlap(spans)
	return nil
}

type taskSpan struct{ from, to time.Time }

// maxOverlap returns the maximal number of spans that overlap at one moment.
func maxOverlap(spans []taskSpan) (most int) {
	type turn struct {
		at time.Time
		by int
	}
	turns := make([]turn, 0, 2*len(spans))
	for _, s := range spans {
		turns = append(turns, turn{s.from, 1}, turn{s.to, -1})
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, t := range turns {
		now += t.by
		most = max(most, now)
	}
	return most
}

// publishOrk publishes an Ork workflow file.
func (s *servedMember) publishOrk(ctx context.Context, file string) error {
	body, err := json.Marshal(map[string]string{"yaml": file})
	if err != nil {
		return err
	}
	return s.sendRequest(ctx, http.MethodPost, "/workflows", "application/json", body, &struct{}{})
}

// publishFlow publishes a Troupe definition.
func (s *servedMember) publishFlow(ctx context.Context, slug, definition string) error {
	return s.sendRequest(ctx, http.MethodPut, "/v1/flows/"+slug, "application/yaml", []byte(definition), &struct{}{})
}

// watchRSS samples the member's resident memory until stop, which returns the peak.
func (s *servedMember) watchRSS() (stop func() (peakMB float64)) {
	end := make(chan struct{})
	var work sync.WaitGroup
	var peak float64
	work.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, s.rssMB())
			select {
			case <-end:
				return
			case <-tick.C:
			}
		}
	})
	return func() float64 {
		close(end)
		work.Wait()
		return peak
	}
}
