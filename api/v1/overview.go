package v1

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	overviewAge  = time.Second // greatest age of an answer
	failedTasks  = 500         // number of failed tasks that are read
	overviewRows = 50          // rows of each list in an overview
)

func (h *statsHandler) addOverviewRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "get-overview", method: http.MethodGet, path: "/v1/overview", tag: "member",
		summary: "See at once how everything is",
		text: "Each number is that of a list, whose query is beside it: the same tasks are " +
			"counted as are listed. The answer may be a second old."}, h.getOverview)
}

func (h *statsHandler) getOverview(ctx context.Context, _ *struct{}) (*bodyResponse[wire.Overview], error) {
	return toResponse(h.overview.getOrMake(ctx, h.engine.Now(), overviewAge, h.buildOverview))
}

// buildOverview computes an overview.
func (h *statsHandler) buildOverview(ctx context.Context) (*wire.Overview, error) {
	now := h.engine.Now()
	slow, err := h.slow.getOrMake(ctx, now, slowAge, h.slowFlows)
	if err != nil {
		return nil, err
	}
	o := &wire.Overview{Now: wire.Time{Time: now}, Slow: *slow}
	for _, part := range []func(context.Context, *wire.Overview) error{h.byState, h.addRecent,
		h.addFailing, h.queuesServed, h.countMembers} {
		if err := part(ctx, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// countListed counts the tasks that a query selects, as their list would.
func (t *taskFinder) countListed(ctx context.Context, pick TaskPick) (wire.ListedTasks, error) {
	f, err := t.filterOf(ctx, &pick)
	if err != nil {
		return wire.ListedTasks{}, err
	}
	n, err := t.countFiltered(ctx, f, nil)
	if err != nil {
		return wire.ListedTasks{}, err
	}
	return wire.ListedTasks{Count: n.Count, Exact: n.Exact, Query: pick.queryString()}, nil
}

// queryString returns the filter as a query string, for the fields that overviews use.
func (p *TaskPick) queryString() string {
	q := url.Values{}
	for _, state := range p.State {
		q.Add("state", state)
	}
	for _, flow := range p.Flow {
		q.Add("flow", flow)
	}
	if p.Failure != "" {
		q.Set("error", p.Failure)
	}
	if p.Version > 0 {
		q.Set("version", strconv.Itoa(p.Version))
	}
	for name, at := range map[string]time.Time{"created_from": p.From, "ended_from": p.EndedFrom} {
		if !at.IsZero() {
			q.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return q.Encode()
}

func (h *statsHandler) byState(ctx context.Context, o *wire.Overview) error {
	for _, state := range []string{"pending", "running", "canceling", "paused", "completed", "failed", "canceled"} {
		n, err := h.finder.countListed(ctx, TaskPick{State: []string{state}})
		if err != nil {
			return err
		}
		o.States = append(o.States, wire.StateTasks{State: state, ListedTasks: n})
	}
	return nil
}

func (h *statsHandler) addRecent(ctx context.Context, o *wire.Overview) error {
	for _, w := range []struct {
		name string
		long time.Duration
	}{{"1h", time.Hour}, {"24h", 24 * time.Hour}} {
		since := o.Now.Add(-w.long)
		r := wire.RecentTasks{Window: w.name, Since: wire.Time{Time: since}}
		for _, part := range []struct {
			of   *wire.ListedTasks
			pick TaskPick
		}{
			{&r.Started, TaskPick{From: since}},
			{&r.Completed, TaskPick{State: []string{string(flow.TaskCompleted)}, EndedFrom: since}},
			{&r.Failed, TaskPick{State: []string{string(flow.TaskFailed)}, EndedFrom: since}},
		} {
			n, err := h.finder.countListed(ctx, part.pick)
			if err != nil {
				return err
			}
			*part.of = n
		}
		o.Recent = append(o.Recent, r)
	}
	return nil
}

// addFailing groups the newest of the tasks that failed in the last day.
func (h *statsHandler) addFailing(ctx context.Context, o *wire.Overview) error {
	since := ceilMillis(o.Now.Add(-24 * time.Hour))
	rows, err := h.store.ListTasks(ctx, persistence.TaskFilter{Statuses: []string{string(
		flow.TaskFailed)}, EndedFrom: since, ByEnd: true, Limit: failedTasks + 1})
	if err != nil {
		return err
	}
	// tasks that failed in the same millisecond are all included, or none of them
	if len(rows) > failedTasks {
		since = rows[failedTasks].EndedAt + 1
		rows = slices.DeleteFunc(rows, func(t persistence.TaskRow) bool { return t.EndedAt < since })
	}
	o.Failing = wire.Failing{Since: wire.Millis(since), Tasks: len(rows), Groups: groupsOf(rows, since)}
	return nil
}

// groupsOf groups tasks by how they failed, the newest first.
func groupsOf(rows []persistence.TaskRow, since int64) []wire.FailureGroup {
	type kind struct{ flow, failure string }
	groups := map[kind]*wire.FailureGroup{}
	for i := range rows {
		t := &rows[i]
		if t.Error == "" {
			continue
		}
		k := kind{orElse(t.FlowSlug, t.FlowID), persistence.Failure(t.Error)}
		if groups[k] == nil {
			pick := TaskPick{Flow: []string{k.flow}, State: []string{string(flow.TaskFailed)},
				Failure: k.failure, EndedFrom: time.UnixMilli(since)}
			groups[k] = &wire.FailureGroup{Flow: k.flow, Node: failedNode(k.failure),
				Error: k.failure, Newest: t.ID, At: wire.Millis(t.EndedAt), Query: pick.queryString()}
		}
		groups[k].Count++
	}
	list := make([]wire.FailureGroup, 0, len(groups))
	for _, g := range groups {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b wire.FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.At.Compare(a.At.Time), cmp.Compare(a.Newest, b.Newest))
	})
	return list[:min(len(list), overviewRows)]
}

// failedNode returns the node that the error of a task names.
func failedNode(err string) string {
	if node, _, named := strings.Cut(err, ": "); named && !strings.Contains(node, " ") {
		return node
	}
	return ""
}

func (h *statsHandler) queuesServed(ctx context.Context, o *wire.Overview) error {
	depth, err := h.store.QueueDepth(ctx)
	if err != nil {
		return err
	}
	serving, workers, err := h.workers.countServing(ctx)
	if err != nil {
		return err
	}
	o.Workers, o.Services, o.Queues = workers, len(depth), []wire.Queue{}
	names := slices.SortedFunc(maps.Keys(depth), func(a, b string) int {
		return cmp.Or(cmp.Compare(depth[a].Oldest, depth[b].Oldest), cmp.Compare(a, b))
	})
	for _, service := range names[:min(len(names), overviewRows)] {
		o.Queues = append(o.Queues, toQueue(service, depth[service], serving[service]))
	}
	return nil
}

func (h *statsHandler) countMembers(ctx context.Context, o *wire.Overview) (err error) {
	if h.cluster != nil {
		o.Members, err = h.cluster.CountMembers(ctx)
	}
	return err
}
