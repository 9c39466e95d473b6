package attack

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// probe simulates ordinary users: they start simple tasks and wait for their ends, and their
// workers carry out the jobs. It measures what an attack does to other users.
type probe struct {
	m    *member
	push *httptest.Server
	work sync.WaitGroup
	stop context.CancelFunc

	mu      sync.Mutex
	took    []time.Duration // of the tasks that ended since the last report
	refused int             // number of answers 429, 503 or none
	faults  []string        // broken rules of tasks
}

// users is the number of users. It is low, so that the attackers have most of the machine.
const users = 3

const probeFlow = yaml(`
name: probe
start: decide
on_error: fail
result: told
nodes:
  decide: {kind: choice, choice_cases: [{action: go, expr: {gt: [$params.n, 1]}}], default_action: stop}
  call: {service: probe-push, prep: {input_key: $params.n}, post: {output_key: called}, retry: {max_attempts: 21, delay: 100ms}}
  ask: {exec_type: queue, service: probe-pull, prep: {input_key: called}, post: {output_key: told}}
edges:
  - {from: decide, action: go, to: call}
  - {from: call, action: default, to: ask}
`)

// startProbe returns when users and workers are running.
func startProbe(m *member) (*probe, error) {
	ctx, stop := context.WithCancel(m.t.Context())
	p := &probe{m: m, stop: stop, push: httptest.NewServer(http.HandlerFunc(carryOut))}
	if err := p.prepare(ctx); err != nil {
		p.end()
		return nil, err
	}
	p.work.Go(func() { p.stayKnown(ctx) })
	for range users {
		p.work.Go(func() { p.poll(ctx) })
		p.work.Go(func() { p.use(ctx) })
	}
	return p, nil
}

// end stops the users and workers.
func (p *probe) end() {
	p.stop()
	p.work.Wait()
	p.push.Close()
}

// carryOut is the push worker; it returns its input.
func carryOut(w http.ResponseWriter, r *http.Request) {
	var job wire.ExecRequest
	if err := json.NewDecoder(r.Body).Decode(&job); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// a member that is gone needs no answer
	_ = json.NewEncoder(w).Encode(wire.ExecAnswer{Result: job.Input})
}

// prepare publishes the flow and registers the push worker.
func (p *probe) prepare(ctx context.Context) error {
	ctx, cancel := p.m.within(ctx, patience)
	defer cancel()
	if a := p.m.insist(ctx, "PUT", "/v1/flows/probe", probeFlow); !a.ok() {
		return fmt.Errorf("publish the probe: %v", a)
	}
	worker := wire.WorkerRegistration{URL: p.push.URL, Services: []string{"probe-push"}}
	if a := p.m.insist(ctx, "PUT", "/v1/workers/probe", worker); !a.ok() {
		return fmt.Errorf("register the probe's worker: %v", a)
	}
	return nil
}

func (p *probe) stayKnown(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, 3*time.Second)
		p.m.ask(ctx, "POST", "/v1/workers/probe/heartbeat", wire.Heartbeat{})
	}
}

// poll is a pull worker.
func (p *probe) poll(ctx context.Context) {
	for ctx.Err() == nil {
		var got wire.ClaimedJobs
		a := p.m.ask(ctx, "POST", "/v1/workers/probe/poll",
			wire.PollRequest{JobRequest: wire.JobRequest{Services: []string{"probe-pull"}, Max: 8}, WaitMS: 5000})
		if a.busy() {
			pause(ctx, 50*time.Millisecond)
			continue
		}
		if a.into(&got) != nil {
			continue
		}
		for _, job := range got.Jobs {
			p.m.insist(ctx, "POST", "/v1/jobs/"+job.ID+"/complete", wire.JobOutput{Token: job.Token, Output: job.Input})
		}
	}
}

// use starts one task after the other. It repeats requests until each task has ended.
func (p *probe) use(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		state, err := p.run(ctx, n)
		if ctx.Err() != nil {
			return
		}
		p.note(time.Since(began), state, err)
		pause(ctx, 20*time.Millisecond)
	}
}

func (p *probe) run(ctx context.Context, n int) (state string, err error) {
	var started wire.StartResult
	start := obj{"flow": "probe", "params": obj{"n": n + 2}, "wait_ms": 10_000, "idempotency_key": rand.Text()}
	for ctx.Err() == nil && started.ID == "" {
		a := p.m.ask(ctx, "POST", "/v1/tasks", start)
		switch {
		case a.busy():
			p.meetRefusal(ctx)
		case !a.ok():
			return "", fmt.Errorf("start: %v", a)
		default:
			err = a.into(&started)
		}
	}
	task := started.Task
	for ctx.Err() == nil && err == nil && task.EndedAt.IsZero() {
		a := p.m.ask(ctx, "GET", "/v1/tasks/"+started.ID+"?wait_ms=10000", nil)
		switch {
		case a.busy():
			p.meetRefusal(ctx)
		case !a.ok():
			return "", fmt.Errorf("read: %v", a)
		default:
			err = a.into(task)
		}
	}
	if task == nil {
		return "", ctx.Err()
	}
	return task.State, err
}

func (p *probe) meetRefusal(ctx context.Context) {
	p.mu.Lock()
	p.refused++
	p.mu.Unlock()
	pause(ctx, 50*time.Millisecond)
}

func (p *probe) note(took time.Duration, state string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = append(p.took, took)
	if err != nil || state != "completed" {
		p.faults = append(p.faults, fmt.Sprintf("a simple task ended %q: %v", state, err))
	}
}

// ended returns the number of tasks that ended since the last report.
func (p *probe) ended() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.took)
}

// seen holds the measurements of the users.
type seen struct {
	tasks, refused int
	p50, p99, most time.Duration
	faults         []string
}

// report returns the measurements since the last report.
func (p *probe) report() seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := seen{tasks: len(p.took), refused: p.refused, faults: p.faults}
	slices.Sort(p.took)
	at := func(q float64) time.Duration {
		if len(p.took) == 0 {
			return 0
		}
		return p.took[min(int(q*float64(len(p.took))), len(p.took)-1)]
	}
	s.p50, s.p99, s.most = at(0.5), at(0.99), at(1)
	p.took, p.refused, p.faults = nil, 0, nil
	return s
}
