package pgflowhttp

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Defaults of a poll.
const (
	pollMax    = 10
	pollWaitMS = 2000
)

// pollTasks answers a poll in the list form.
func (p *pgflow) pollTasks(w http.ResponseWriter, r *http.Request) error {
	q, err := readPoll(r)
	if err != nil {
		return err
	}
	flowID := ""
	if q.Flow != "" {
		if flowID, q.Services, err = p.servicesOf(r.Context(), q); err != nil {
			return err
		}
	}
	var jobs engine.Jobs
	if len(q.Services) > 0 {
		asked := engine.Poll{Worker: q.WorkerID, Services: q.Services, FlowID: flowID, Labels: q.Labels, Max: max(q.Max, 1)}
		if jobs, err = api.Poll(w, r, p.engine, asked, q.WaitMS); err != nil {
			return err
		}
	}
	if len(jobs) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	tasks := make([]wire.QueueTask, len(jobs))
	for i, c := range jobs {
		tasks[i] = toQueueTask(c)
	}
	api.WriteJSON(w, http.StatusOK, wire.QueueTasks{Tasks: tasks})
	return nil
}

func readPoll(r *http.Request) (q wire.QueuePoll, err error) {
	b, err := api.ReadBody(r)
	if err != nil {
		return q, err
	}
	q = wire.QueuePoll{WorkerID: b.Text("worker_id"), Services: b.Texts("services"),
		Max: cmp.Or(b.Number("max"), pollMax), WaitMS: pollWaitMS,
		Flow: b.Text("flow"), Labels: b.Texts("labels")}
	if b.Has("wait_ms") {
		q.WaitMS = int64(b.Number("wait_ms"))
	}
	switch {
	case b.Bad:
		return q, b.Problem()
	case q.Flow == "" && len(q.Services) == 0:
		return q, flow.Errorf(flow.Invalid, "flow or services is missing: say what you can do")
	}
	return q, nil
}

func toQueueTask(c engine.Claimed) wire.QueueTask {
	j := &c.Job
	t := wire.QueueTask{
		ID: j.ID(), Key: j.Key(), FlowSlug: j.Flow, RunID: j.Task, StepSlug: j.Step(), TaskIndex: j.Unit, TaskCount: max(j.Units, 1),
		Input: api.OrNull(j.Input), Attempt: j.Attempt, Timeout: float64(j.TimeoutMS) / 1000,
		Service: j.Service, Labels: j.Labels, Token: c.Token, VisibilityMS: c.Until - c.ClaimedAt,
	}
	if t.ParamsKey = j.ParamsKey; j.ParamsKey == "" {
		t.Params = api.OrObject(j.Params)
	}
	if !j.RunApart {
		t.FlowInput = api.OrNull(j.Run)
	}
	return t
}

// flowServices caches which services the newest version of each flow needs.
type flowServices struct {
	mu     sync.Mutex
	byFlow map[string]knownServices
}

type knownServices struct {
	newest   string // id of the version
	services []string
}

// maxKnown is the maximum number of cached flows.
const maxKnown = 1000

// servicesOf returns the flow of a poll and its services. If the poll names no services, these are
// all services that jobs of any version of the flow may need.
func (p *pgflow) servicesOf(ctx context.Context, q wire.QueuePoll) (flowID string, services []string, err error) {
	f, v, err := p.newestVersion(ctx, q.Flow)
	if err != nil || len(q.Services) > 0 {
		return idOf(f), q.Services, err
	}
	p.services.mu.Lock()
	known := p.services.byFlow[f.ID]
	p.services.mu.Unlock()
	if known.newest == v.ID {
		return f.ID, known.services, nil
	}
	if services, err = p.allServices(ctx, f.ID); err != nil {
		return "", nil, err
	}
	p.services.mu.Lock()
	defer p.services.mu.Unlock()
	if len(p.services.byFlow) >= maxKnown {
		clear(p.services.byFlow)
	}
	p.services.byFlow[f.ID] = knownServices{v.ID, services}
	return f.ID, services, nil
}

func idOf(f *persistence.Flow) string {
	if f == nil {
		return ""
	}
	return f.ID
}

func (p *pgflow) allServices(ctx context.Context, flowID string) ([]string, error) {
	versions, err := p.store.ListVersions(ctx, flowID)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for i := range versions {
		plan, err := p.reader.Plan(ctx, versions[i].ID)
		if err != nil {
			continue // accepted by an older release; no task of it runs
		}
		for _, service := range plan.QueueServices() {
			all[service] = true
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// completeByID ends a task, given by its id in the answer to a poll.
func (p *pgflow) completeByID(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	id := b.Text("id")
	report := flow.Report{Output: b.Raw("result"), Error: b.Text("error"), Token: b.Text("token"),
		Worker: b.Text("worker_id"), Poller: true}
	b.Into("fatal", &report.Fatal)
	if b.Bad {
		return b.Problem()
	}
	_, run, at, err := api.JobOf(id, api.QueuePrefix)
	if err != nil {
		return err
	}
	report.Address, report.Output = at, api.OrNull(report.Output)
	return p.reportTask(w, r, run, report)
}

// extendByID extends the claim of a task, given by its id in the answer to a poll.
func (p *pgflow) extendByID(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	id, token, worker, seconds := b.Text("id"), b.Text("token"), b.Text("worker_id"), 0.0
	b.Into("extend", &seconds)
	if b.Bad {
		return b.Problem()
	}
	by, err := api.ExtendBy(seconds)
	if err != nil {
		return err
	}
	job, _, _, err := api.JobOf(id, api.QueuePrefix)
	if err != nil {
		return err
	}
	answer := wire.QueueHeartbeatAnswer{OK: "1", Canceled: []string{}}
	over, err := api.Extend(r.Context(), p.engine, worker, []engine.Claim{{Job: job, Token: token}}, by)
	if err != nil {
		return err
	}
	if len(over.Canceled) > 0 {
		answer.Canceled = append(answer.Canceled, id)
	}
	api.WriteJSON(w, http.StatusOK, answer)
	return nil
}
