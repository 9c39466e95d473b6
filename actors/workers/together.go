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

// A worker that takes several jobs with one request says so by the header Troupe-Batch of its
// answers. It is posted them at /exec, as JSON values one behind the other, and answers with a line
// for each as soon as that one has ended: its place among them, a blank, and the answer. So a slow
// job keeps none of the others, and a step does not cost a request.

const headerBatch = "Troupe-Batch"

// What one request holds at most, and how large a job may be that goes along with others.
const (
	maxBatchCalls = 100
	maxBatchBytes = 1 << 20
	largeCall     = 64 << 10
)

// errNoBatches: the worker takes no jobs together, although it said so before.
var errNoBatches = errors.New("the worker takes one job at a time")

// callBatcher is where calls of one worker wait to go along with others.
type callBatcher struct {
	mu      sync.Mutex
	waiting []*batchedCall
	taken   bool // somebody is about to take them
}

// batchedCall is a call that goes along with others.
type batchedCall struct {
	*workerCall
	ctx        context.Context
	batch      *callBatch // nil = it waits
	position   int
	isAnswered atomic.Bool
	answered   chan callOutcome
}

type callOutcome struct {
	rep flow.Report
	err error
}

// callBatch is calls under way with one request.
type callBatch struct {
	id      string
	calls   []*batchedCall
	ctx     context.Context
	hangUp  context.CancelFunc
	mu      sync.Mutex
	waiting int // of them for an answer
}

// callInBatch asks a worker along with other calls.
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

// enqueueCall reports whether nobody is about to take what waits.
func (q *callBatcher) enqueueCall(p *batchedCall) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	first = !q.taken
	q.taken = true
	return first
}

// batchOf is the batch of a call that nobody waits for any longer; nil = it has not begun.
func (q *callBatcher) batchOf(p *batchedCall) *callBatch {
	q.mu.Lock()
	defer q.mu.Unlock()
	return p.batch
}

// takeBatch makes a batch of what waits. One that nobody waits for any longer is left out.
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
	b.ctx, b.hangUp = context.WithCancel(context.Background()) // it ends with the last of its calls
	return b, q.taken
}

// finishCall notes that somebody waits no longer, and hangs up when nobody does.
func (b *callBatch) finishCall() (left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting--; b.waiting == 0 {
		b.hangUp()
	}
	return b.waiting
}

func (r *Registry) sendBatches(w *registeredWorker) {
	runtime.Gosched() // what is about to be called as well goes along
	for {
		b, more := w.batcher.takeBatch()
		if !more {
			r.sendBatch(w, b)
			return
		}
		go r.sendBatch(w, b)
	}
}

// sendBatch asks a worker and tells each call its answer, or why there is none.
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

// setOutcome is false for one that has been told something, or that nobody waits for.
func (p *batchedCall) setOutcome(o callOutcome) bool {
	if p.isAnswered.Swap(true) {
		return false
	}
	p.answered <- o // there is room for the only one
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

// postBatch sends a worker something about a batch.
func (r *Registry) postBatch(ctx context.Context, w *registeredWorker, b *callBatch, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(w.execURL(), "/"), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Without a value the header is not sent, and lets the request be sent again: each job has a
	// key of its own.
	req.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {}, headerBatch: {b.id}}
	if w.Secret != "" {
		req.Header.Set("Authorization", "Bearer "+w.Secret)
	}
	return r.client.Do(req)
}

// encodeJobs is the jobs, one behind the other.
func (b *callBatch) encodeJobs() []byte {
	var body []byte
	for _, p := range b.calls {
		body = append(append(body, headOf(p.job)...), p.body[1:]...)
	}
	return body
}

// readLine reads one answer.
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
		if buf.Len() <= r.opts.MaxAnswer { // or else it is too large anyway
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

// withdrawCall tells a worker that nobody waits for a job any longer. It is not told twice: then it
// works in vain.
func (r *Registry) withdrawCall(w *registeredWorker, b *callBatch, p *batchedCall) {
	ctx, cancel := context.WithTimeout(b.ctx, r.opts.CallTimeout)
	defer cancel()
	resp, err := r.postBatch(ctx, w, b, fmt.Appendf(nil, `{"withdrawn":%d}`, p.position))
	if err == nil {
		resp.Body.Close()
	}
}

// headOf tells of a job what is not in the body of its call, which it is put before.
func headOf(job *flow.Job) []byte {
	head, _ := json.Marshal(struct { // nothing in there has no JSON
		Job     string `json:"job"`
		Service string `json:"service"`
		Task    string `json:"task"`
		Flow    string `json:"flow,omitempty"`
		Step    string `json:"step"`
		Unit    int    `json:"unit"`
		Units   int    `json:"units"`
		Attempt int    `json:"attempt"`
		Trace   string `json:"trace"`
		State   string `json:"trace_state,omitempty"`
	}{job.ID(), job.Exec.Service, job.Task, slugOf(job), job.Step(), job.Unit, max(job.Units, 1), job.Attempt, trace.Parent(job.Task, job.Traced, job.Address), trace.State(job.Traced)})
	head[len(head)-1] = ','
	return head
}

func slugOf(job *flow.Job) string {
	if job.Plan == nil {
		return ""
	}
	return job.Plan.FlowSlug
}
