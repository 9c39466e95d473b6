package workers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/flow"
)

// pushed is a job in the form for a worker that accepts several per request.
type pushed struct {
	Job, Service, Step, Trace string
	Input                     json.RawMessage
	Withdrawn                 *int
}

// several is a worker that accepts several jobs per request, which many answers.
func several(many func(w http.ResponseWriter, r *http.Request, jobs []pushed)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Troupe-Batch", "1")
		if r.URL.Path != "/exec" {
			_, _ = io.WriteString(w, `{"result":"alone"}`)
			return
		}
		var jobs []pushed
		for dec := json.NewDecoder(r.Body); ; {
			var j pushed
			if dec.Decode(&j) != nil {
				break
			}
			jobs = append(jobs, j)
		}
		many(w, r, jobs)
	}
}

// echo answers jobs with their inputs, the last one first.
func echo(w http.ResponseWriter, _ *http.Request, jobs []pushed) {
	for i := len(jobs) - 1; i >= 0; i-- {
		fmt.Fprintf(w, "%d {\"result\":%s}\n", i, jobs[i].Input)
	}
}

func numbered(n int) flow.Job {
	j := job("s")
	j.Input = json.RawMessage(strconv.Itoa(n))
	return j
}

func TestAWorkerThatAcceptsBatchesGetsSeveralJobsPerRequest(t *testing.T) {
	r := open(t, newStore(t), workers.Options{})
	var mu sync.Mutex
	var got []pushed
	serve(t, r, several(func(w http.ResponseWriter, r *http.Request, jobs []pushed) {
		mu.Lock()
		got = append(got, jobs...)
		mu.Unlock()
		echo(w, r, jobs)
	}))
	require.Equal(t, `"alone"`, string(r.Carry(t.Context(), numbered(0)).Output), "so far nobody knows")
	const n = 300
	outputs := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { outputs[i] = string(r.Carry(t.Context(), numbered(i)).Output) })
	}
	all.Wait()
	for i, output := range outputs {
		require.Equal(t, strconv.Itoa(i), output, "each gets its own answer")
	}
	require.Len(t, got, n)
	j := numbered(0)
	require.Equal(t, []string{j.ID(), "s", "n"}, []string{got[0].Job, got[0].Service, got[0].Step})
	require.NotEmpty(t, got[0].Trace)
	large := job("s")
	large.Input = json.RawMessage(`"` + strings.Repeat("x", 100<<10) + `"`)
	require.Equal(t, `"alone"`, string(r.Carry(t.Context(), large).Output), "a large job keeps none of the others")
}

func TestAWithdrawnJobDoesNotEndItsBatch(t *testing.T) {
	r := open(t, newStore(t), workers.Options{})
	withdrawn := make(chan int, 1)
	arrived, release := make(chan int, 2), make(chan struct{})
	serve(t, r, several(func(w http.ResponseWriter, r *http.Request, jobs []pushed) {
		if jobs[0].Withdrawn != nil {
			withdrawn <- *jobs[0].Withdrawn
			return
		}
		arrived <- len(jobs)
		select {
		case <-release:
			echo(w, r, jobs)
		case <-r.Context().Done():
			withdrawn <- -1
		}
	}))
	r.Carry(t.Context(), numbered(0))
	first, leave := context.WithCancel(t.Context())
	defer leave()
	answers := make(chan flow.Report, 2)
	both := func() {
		go func() { answers <- r.Carry(first, numbered(1)) }()
		go func() { answers <- r.Carry(t.Context(), numbered(2)) }()
	}
	both()
	n := <-arrived
	if n == 1 {
		<-arrived // each has a request of its own: the canceled one ends
	}
	leave()
	require.Equal(t, context.Canceled.Error(), (<-answers).Error)
	require.Contains(t, []int{-1, 0, 1}, <-withdrawn)
	close(release)
	require.Equal(t, "2", string((<-answers).Output))
}

func TestMissingBatchAnswersGoToAnotherWorker(t *testing.T) {
	for name, answer := range map[string]string{
		"left out":       "",
		"without answer": "0 \n",
		"broken off":     "0 {\"resu",
		"no number":      "x {\"result\":1}\n",
		"another number": "7 {\"result\":1}\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, newStore(t), workers.Options{})
			serve(t, r, several(func(w http.ResponseWriter, _ *http.Request, _ []pushed) {
				_,
					_ = io.WriteString(w, answer)
			}), says(200, `{"result":"second"}`))
			r.Carry(t.Context(), numbered(0))
			require.Equal(t, `"second"`, string(r.Carry(t.Context(), numbered(1)).Output))
		})
	}
}

func TestATooLargeBatchAnswerFailsItsJob(t *testing.T) {
	r := open(t, newStore(t), workers.Options{MaxAnswer: 100})
	serve(t, r, several(func(w http.ResponseWriter, _ *http.Request, _ []pushed) {
		fmt.Fprintf(w, "0 {\"result\":%q}\n", strings.Repeat("x", 10_000))
	}))
	r.Carry(t.Context(), numbered(0))
	require.Equal(t, "the worker's answer is larger than 100 bytes", r.Carry(t.Context(), numbered(1)).Error)
}

func TestAWorkerThatStopsAcceptingBatchesGetsSingleJobs(t *testing.T) {
	r := open(t, newStore(t), workers.Options{})
	first := true
	serve(t, r, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/exec" {
			http.NotFound(w, r)
			return
		}
		if first {
			w.Header().Set("Troupe-Batch", "1")
		}
		first = false
		_, _ = io.WriteString(w, `{"result":"alone"}`)
	})
	for range 3 {
		require.Equal(t, `"alone"`, string(r.Carry(t.Context(), numbered(0)).Output))
	}
}
