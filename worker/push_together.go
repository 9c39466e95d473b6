package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strconv"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/job"
)

// batchPosition is the position of a job in its request.
type batchPosition struct {
	batch string
	n     int
}

// handleExecBatch carries out several pushed jobs. Each job is answered as soon as it has ended,
// with a line of its position, a space, and the answer.
func (w *Worker) handleExecBatch(rw http.ResponseWriter, r *http.Request) {
	if !w.authorizeCaller(rw, r) {
		return
	}
	rw.Header().Set(wire.HeaderBatch, "1")
	// a buffering proxy would make each job wait for the slowest
	rw.Header().Set("X-Accel-Buffering", "no")
	batch := r.Header.Get(wire.HeaderBatch)
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxRequest))
	var jobs []wire.ExecJob
	if err == nil {
		jobs, err = readJobs(body)
	}
	if err != nil {
		http.Error(rw, "bad request", http.StatusBadRequest)
		return
	}
	ended, begun := make(chan []byte, len(jobs)), 0
	for n := range jobs {
		if gone := jobs[n].Withdrawn; gone != nil {
			w.cancelPushed(batchPosition{batch, *gone})
			continue
		}
		at := batchPosition{batch, n}
		ctx, stop := context.WithCancel(r.Context())
		w.pushed.Store(at, stop)
		begun++
		go func() {
			defer stop()
			defer w.pushed.Delete(at)
			ended <- w.execOne(ctx, n, &jobs[n])
		}()
	}
	w.writeAnswers(rw, ended, begun)
}

func readJobs(body []byte) (jobs []wire.ExecJob, err error) {
	for dec := json.NewDecoder(bytes.NewReader(body)); ; {
		var j wire.ExecJob
		if err := dec.Decode(&j); err == io.EOF {
			return jobs, nil
		} else if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
}

// writeAnswers writes the answers of the given number of jobs. Answers of jobs that end together
// are sent together.
func (w *Worker) writeAnswers(rw http.ResponseWriter, ended <-chan []byte, jobs int) {
	for ; jobs > 0; jobs-- {
		_, _ = rw.Write(<-ended) // fails only if the caller is gone
		if len(ended) == 0 {
			runtime.Gosched() // lets answers that are about to follow join the write
		}
		if len(ended) == 0 {
			_ = http.NewResponseController(rw).Flush()
		}
	}
}

// execOne returns the line that answers a job. If the line has no answer, the engine asks another
// worker.
func (w *Worker) execOne(ctx context.Context, n int, req *wire.ExecJob) []byte {
	line := append(strconv.AppendInt(nil, int64(n), 10), ' ')
	w.load.Add(1)
	defer w.load.Add(-1)
	h := w.handlerFor(req.Service)
	if h == nil || !w.takeSlot(ctx) {
		return append(line, '\n')
	}
	defer w.freeSlot()
	j := job.WithKey(req.Key, Job{ID: req.Job, Service: req.Service, Input: req.Input,
		Params: req.Params, Task: req.Task, Flow: req.Flow, Step: req.Step,
		Trace: req.Trace, Unit: req.Unit, Units: max(req.Units, 1), Attempt: req.Attempt, Labels: req.Labels,
		Log: io.Discard})
	said := w.callHandler(ctx, h, j, "", nil)
	text, _ := json.Marshal(said)
	return append(append(line, text...), '\n')
}

// cancelPushed cancels a job whose result is no longer needed.
func (w *Worker) cancelPushed(at batchPosition) {
	if stop, ok := w.pushed.Load(at); ok {
		stop.(context.CancelFunc)()
	}
}
