package api

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// writeTasks answers a poll in the list form.
func writeTasks(w http.ResponseWriter, claimed []engine.Claimed) error {
	tasks := make([]wire.QueueTask, len(claimed))
	for i, c := range claimed {
		tasks[i] = toQueueTask(c)
	}
	writeJSON(w, http.StatusOK, wire.QueueTasks{Tasks: tasks})
	return nil
}

func toQueueTask(c engine.Claimed) wire.QueueTask {
	j := &c.Job
	t := wire.QueueTask{
		ID: j.ID(), FlowSlug: j.Flow, RunID: j.Task, StepSlug: j.Step(), TaskIndex: j.Unit, TaskCount: max(j.Units, 1),
		Input: orNull(j.Input), Attempt: j.Attempt, Timeout: float64(j.TimeoutMS) / 1000,
		Service: j.Service, Token: c.Token, VisibilityMS: c.Until - c.ClaimedAt,
	}
	if t.ParamsKey = j.ParamsKey; j.ParamsKey == "" {
		t.Params = orObject(j.Params)
	}
	if !j.RunApart {
		t.FlowInput = orNull(j.Run)
	}
	return t
}

// flowServices remembers which services a flow has asked for, as of its newest version.
type flowServices struct {
	mu     sync.Mutex
	byFlow map[string]knownServices
}

type knownServices struct {
	newest   string // id of the version
	services []string
}

// maxKnown bounds how many flows are remembered.
const maxKnown = 1000

// servicesOf finds the flow of a poll and what the poll asks for: without services everything that jobs of
// any version of the flow may be for.
func (p *pgflow) servicesOf(ctx context.Context, q wire.QueuePoll) (flowID string, services []string, err error) {
	f, v, err := p.newest(ctx, q.Flow)
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
			continue // one that an older release has accepted; nothing of it runs
		}
		for _, service := range plan.QueueServices() {
			all[service] = true
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// completeByID ends a task by the id that a poll told.
func (p *pgflow) completeByID(w http.ResponseWriter, r *http.Request, b *graphBody) error {
	id := b.text("id")
	report := flow.Report{Output: b.raw("result"), Error: b.text("error"), Token: b.text("token"), Worker: b.text("worker_id"), Poller: true}
	b.into("fatal", &report.Fatal)
	if b.bad {
		return b.problem()
	}
	_, run, at, err := jobOf(id, queuePrefix)
	if err != nil {
		return err
	}
	report.Address = at
	if report.Output == nil {
		report.Output = json.RawMessage("null")
	}
	return p.report(w, r, run, report)
}
