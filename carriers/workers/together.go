package workers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// A worker that accepts several jobs per request sets the header Troupe-Batch in its answers. Jobs
// are then posted to /exec as consecutive JSON values. The worker writes one line when a job has
// ended: the index, a space, and the answer. So a slow job does not delay others.

const headerBatch = "Troupe-Batch"

// These are the limits of one request, and of a job that shares a request.
const (
	maxBatchCalls = 100
	maxBatchBytes = 1 << 20
	largeCall     = 64 << 10
)

// errNoBatches means that the worker no longer accepts several jobs per request.
var errNoBatches = errors.New("the worker takes one job at a time")

// callBatcher collects calls of one worker to send them together.
type callBatcher struct {
	mu      sync.Mutex
	waiting []*batchedCall
	taken   bool // a goroutine is about to take the waiting calls
}

// batchedCall is a call that is sent together with others.
type batchedCall struct {
	*workerCall
	ctx        context.Context
	batch      *callBatch // nil while the call waits
	position   int
	isAnswered atomic.Bool
	answered   chan callOutcome
}

type callOutcome struct {
	rep flow.Report
	err error
}

// callBatch holds the calls of one request.
type callBatch struct {
	id      string
	calls   []*batchedCall
	ctx     context.Context
	hangUp  context.CancelFunc
	mu      sync.Mutex
	waiting int // calls without an answer
}

// callInBatch calls a worker together with other calls.
func (r *Registry) callInBatch(ctx context.Context, w *registeredWorker, c *workerCall) (flow.Report, error) {
	p := &batchedCall{workerCall: c, ctx: ctx, answered: make(chan callOutcome, 1)}
	if w.batcher.enqueueCall(p) {
		go r.sendBatches(w)
	}
	select {
	case o := <-p.answered:
		return o.rep, o.err
	case <-ctx.Done():
		if b := w.batcher.batchOf(p); b != nil && p.setOutcome(callOutcome{}) && b.finishCall() > 0 {
			go r.withdrawCall(w, b, p)
		}
		return flow.Report{}, ctx.Err()
	}
}

// enqueueCall queues a call. It reports whether the caller must start a sender.
func (q *callBatcher) enqueueCall(p *batchedCall) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	first = !q.taken
	q.taken = true
	return first
}

// batchOf returns the batch of a canceled call; nil if the call was not sent.
func (q *callBatcher) batchOf(p *batchedCall) *callBatch {
	q.mu.Lock()
	defer q.mu.Unlock()
	return p.batch
}

// takeBatch forms a batch of waiting calls, and drops canceled ones.
func (q *callBatcher) takeBatch() (b *callBatch, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b = &callBatch{id: rand.Text()}
	n, bytes := 0, 0
	for ; n < len(q.waiting) && len(b.calls) < maxBatchCalls && bytes < maxBatchBytes; n++ {
		p := q.waiting[n]
		if p.ctx.Err() != nil {
			continue
		}
		p.batch, p.position = b, len(b.calls)
		b.calls = append(b.calls, p)
		bytes += len(p.body)
	}
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	q.taken = len(q.waiting) > 0
	b.waiting = len(b.calls)
	b.ctx, b.hangUp = context.WithCancel(context.Background()) // ends with the last call
	return b, q.taken
}

// finishCall records that a call no longer waits. It ends the request when no call waits.
func (b *callBatch) finishCall() (left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting--; b.waiting == 0 {
		b.hangUp()
	}
	return b.waiting
}

func (r *Registry) sendBatches(w *registeredWorker) {
	runtime.Gosched() // collects calls that are about to be added
	for {
		b, more := w.batcher.takeBatch()
		if !more {
			r.sendBatch(w, b)
			return
		}
		go r.sendBatch(w, b)
	}
}

// sendBatch calls a worker and sets the outcome of each call.
func (r *Registry) sendBatch(w *registeredWorker, b *callBatch) {
	defer b.hangUp()
	if len(b.calls) == 0 {
		return
	}
	err := r.exchangeBatch(w, b)
	if err == nil {
		err = fmt.Errorf("%w: it left the job out", errNotAnswered)
	}
	for _, p := range b.calls {
		p.setOutcome(callOutcome{err: err})
	}
}

// setOutcome sets the outcome of a call. It returns false if the call already has one or was
// canceled.
func (p *batchedCall) setOutcome(o callOutcome) bool {
	if p.isAnswered.Swap(true) {
		return false
	}
	p.answered <- o // the buffer has room for one outcome
	return true
}

func (r *Registry) exchangeBatch(w *registeredWorker, b *callBatch) error {
	resp, err := r.postBatch(b.ctx, w, b, b.encodeJobs())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.Header.Get(headerBatch) == "" {
		w.takesBatches.Store(false)
		return errNoBatches
	}
	in := bufio.NewReader(resp.Body)
	for {
		o, place, err := r.readLine(w, resp, in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if place < 0 || place >= len(b.calls) {
			return fmt.Errorf("%w: it answers what it was not asked", errNotAnswered)
		}
		if b.calls[place].setOutcome(o) {
			b.finishCall()
		}
	}
}

// postBatch sends a worker a request about a batch.
func (r *Registry) postBatch(ctx context.Context, w *registeredWorker, b *callBatch, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(w.execURL(), "/"), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Without a value, the header is not sent, but makes the HTTP client retry the request. Each
	// job has its own key.
	req.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {}, headerBatch: {b.id}}
	if w.Secret != "" {
		req.Header.Set("Authorization", "Bearer "+w.Secret)
	}
	return r.client.Do(req)
}

// encodeJobs returns the jobs as consecutive JSON values.
func (b *callBatch) encodeJobs() []byte {
	var body []byte
	for _, p := range b.calls {
		body = append(append(body, headOf(p.job)...), p.body[1:]...)
	}
	return body
}

// readLine reads the answer to one job.
func (r *Registry) readLine(w *registeredWorker, resp *http.Response, in *bufio.Reader) (o callOutcome, place int, err error) {
	prefix, err := in.ReadSlice(' ')
	if err != nil {
		if err == io.EOF && len(prefix) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return o, 0, err
	}
	if place, err = strconv.Atoi(string(prefix[:len(prefix)-1])); err != nil {
		return o, 0, fmt.Errorf("%w: %w", errNotAnswered, err)
	}
	buf := bodies.Get().(*bytes.Buffer)
	defer giveBody(buf)
	for more := true; more; {
		part, err := in.ReadSlice('\n')
		if more = errors.Is(err, bufio.ErrBufferFull); err != nil && !more {
			return o, 0, io.ErrUnexpectedEOF
		}
		if buf.Len() <= r.opts.MaxAnswer { // otherwise the answer is too large anyway
			buf.Write(part)
		}
	}
	o.rep = flow.Report{Worker: w.ID, URL: w.URL}
	if buf.Len() > r.opts.MaxAnswer+len("\n") {
		o.rep.Error = tooLarge(r.opts.MaxAnswer)
		return o, place, nil
	}
	o.err = readAnswer(&o.rep, resp, buf.Bytes())
	return o, place, nil
}

// withdrawCall notifies a worker that a job is no longer needed. It does not retry, because a lost
// notice only wastes work.
func (r *Registry) withdrawCall(w *registeredWorker, b *callBatch, p *batchedCall) {
	ctx, cancel := context.WithTimeout(b.ctx, r.opts.CallTimeout)
	defer cancel()
	resp, err := r.postBatch(ctx, w, b, fmt.Appendf(nil, `{"withdrawn":%d}`, p.position))
	if err == nil {
		resp.Body.Close()
	}
}

// headOf returns the fields of a job that its body lacks. They precede the body.
func headOf(job *flow.Job) []byte {
	head, _ := json.Marshal(struct { // all fields can be encoded
		Job     string   `json:"job"`
		Service string   `json:"service"`
		Task    string   `json:"task"`
		Flow    string   `json:"flow,omitempty"`
		Step    string   `json:"step"`
		Unit    int      `json:"unit"`
		Units   int      `json:"units"`
		Attempt int      `json:"attempt"`
		Labels  []string `json:"labels,omitempty"`
		Trace   string   `json:"trace"`
		State   string   `json:"trace_state,omitempty"`
	}{job.ID(), job.Exec.Service, job.Task, slugOf(job), job.Step(), job.Unit, max(job.Units, 1),
		job.Attempt, job.Exec.Labels, trace.Parent(job.Task, job.Traced, job.Address), trace.State(job.Traced)})
	head[len(head)-1] = ','
	return head
}

func slugOf(job *flow.Job) string {
	if job.Plan == nil {
		return ""
	}
	return job.Plan.FlowSlug
}
