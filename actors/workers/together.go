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

// A worker that takes several jobs with one request says so by the header Troupe-Batch of its answers. It is posted them at /exec, as JSON values
// one behind the other, and answers with a line for each as soon as that one has ended: its place among them, a blank, and the answer. So a slow
// job keeps none of the others, and a step does not cost a request.

const headerBatch = "Troupe-Batch"

// What one request holds at most, and how large a job may be that goes along with others.
const (
	mostTogether  = 100
	bytesTogether = 1 << 20
	largeCall     = 64 << 10
)

// errAlone: the worker takes no jobs together, although it said so before.
var errAlone = errors.New("the worker takes one job at a time")

// batcher is where calls of one worker wait to go along with others.
type batcher struct {
	mu      sync.Mutex
	waiting []*batchedCall
	called  bool // somebody is about to take them
}

// batchedCall is a call that goes along with others.
type batchedCall struct {
	*call
	ctx      context.Context
	with     *batch // nil = it waits
	place    int
	told     atomic.Bool
	answered chan outcome
}

type outcome struct {
	rep flow.Report
	err error
}

// batch is calls under way with one request.
type batch struct {
	id      string
	all     []*batchedCall
	ctx     context.Context
	hangUp  context.CancelFunc
	mu      sync.Mutex
	waiting int // of them for an answer
}

// callTogether asks a worker along with other calls.
func (r *Registry) callTogether(ctx context.Context, w *worker, c *call) (flow.Report, error) {
	p := &batchedCall{call: c, ctx: ctx, answered: make(chan outcome, 1)}
	if w.batcher.add(p) {
		go r.sendAll(w)
	}
	select {
	case o := <-p.answered:
		return o.rep, o.err
	case <-ctx.Done():
		if b := w.batcher.leave(p); b != nil && p.tell(outcome{}) && b.done() > 0 {
			go r.withdraw(w, b, p)
		}
		return flow.Report{}, ctx.Err()
	}
}

// add says whether nobody is about to take what waits.
func (q *batcher) add(p *batchedCall) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	first = !q.called
	q.called = true
	return first
}

// leave is the batch of a call that nobody waits for any longer; nil = it has not begun.
func (q *batcher) leave(p *batchedCall) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	return p.with
}

// take makes a batch of what waits. One that nobody waits for any longer is left out.
func (q *batcher) take() (b *batch, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b = &batch{id: rand.Text()}
	n, bytes := 0, 0
	for ; n < len(q.waiting) && len(b.all) < mostTogether && bytes < bytesTogether; n++ {
		p := q.waiting[n]
		if p.ctx.Err() != nil {
			continue
		}
		p.with, p.place = b, len(b.all)
		b.all = append(b.all, p)
		bytes += len(p.body)
	}
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	q.called = len(q.waiting) > 0
	b.waiting = len(b.all)
	b.ctx, b.hangUp = context.WithCancel(context.Background()) // it ends with the last of its calls
	return b, q.called
}

// done notes that somebody waits no longer, and hangs up when nobody does.
func (b *batch) done() (left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting--; b.waiting == 0 {
		b.hangUp()
	}
	return b.waiting
}

func (r *Registry) sendAll(w *worker) {
	runtime.Gosched() // what is about to be called as well goes along
	for {
		b, more := w.batcher.take()
		if !more {
			r.send(w, b)
			return
		}
		go r.send(w, b)
	}
}

// send asks a worker and tells each call its answer, or why there is none.
func (r *Registry) send(w *worker, b *batch) {
	defer b.hangUp()
	if len(b.all) == 0 {
		return
	}
	err := r.exchange(w, b)
	if err == nil {
		err = fmt.Errorf("%w: it left the job out", errNoAnswer)
	}
	for _, p := range b.all {
		p.tell(outcome{err: err})
	}
}

// tell is false for one that has been told something, or that nobody waits for.
func (p *batchedCall) tell(o outcome) bool {
	if p.told.Swap(true) {
		return false
	}
	p.answered <- o // there is room for the only one
	return true
}

func (r *Registry) exchange(w *worker, b *batch) error {
	resp, err := r.post(b.ctx, w, b, b.body())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.Header.Get(headerBatch) == "" {
		w.several.Store(false)
		return errAlone
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
		if place < 0 || place >= len(b.all) {
			return fmt.Errorf("%w: it answers what it was not asked", errNoAnswer)
		}
		if b.all[place].tell(o) {
			b.done()
		}
	}
}

// post sends a worker something about a batch.
func (r *Registry) post(ctx context.Context, w *worker, b *batch, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(w.endpoint(), "/"), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Without a value the header is not sent, and lets the request be sent again: each job has a key of its own.
	req.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {}, headerBatch: {b.id}}
	if w.Secret != "" {
		req.Header.Set("Authorization", "Bearer "+w.Secret)
	}
	return r.client.Do(req)
}

// body is the jobs, one behind the other.
func (b *batch) body() []byte {
	var body []byte
	for _, p := range b.all {
		body = append(append(body, headOf(p.job)...), p.body[1:]...)
	}
	return body
}

// readLine reads one answer.
func (r *Registry) readLine(w *worker, resp *http.Response, in *bufio.Reader) (o outcome, place int, err error) {
	prefix, err := in.ReadSlice(' ')
	if err != nil {
		if err == io.EOF && len(prefix) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return o, 0, err
	}
	if place, err = strconv.Atoi(string(prefix[:len(prefix)-1])); err != nil {
		return o, 0, fmt.Errorf("%w: %w", errNoAnswer, err)
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

// withdraw tells a worker that nobody waits for a job any longer. It is not told twice: then it works in vain.
func (r *Registry) withdraw(w *worker, b *batch, p *batchedCall) {
	ctx, cancel := context.WithTimeout(b.ctx, r.opts.CallTimeout)
	defer cancel()
	resp, err := r.post(ctx, w, b, fmt.Appendf(nil, `{"withdrawn":%d}`, p.place))
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
