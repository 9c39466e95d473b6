package statistics

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/work"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	overviewAge  = time.Second // maximum age of an answer
	failedTasks  = 500         // maximum number of failed tasks that are read
	overviewRows = 50          // number of rows of each list in an overview
)

func (h *Handler) addOverviewRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "get-overview", Method: http.MethodGet, Path: "/v1/overview", Tag: "member",
		Summary: "Get an overview",
		Text: "Each number comes with the query of the list that it counts. The answer may be a " +
			"second old."}, h.getOverview)
}

func (h *Handler) getOverview(ctx context.Context, _ *struct{}) (*route.Response[wire.Overview], error) {
	return route.NewResponse(h.overview.getOrMake(ctx, h.Engine.Now(), overviewAge, h.buildOverview))
}

// buildOverview computes an overview.
func (h *Handler) buildOverview(ctx context.Context) (*wire.Overview, error) {
	now := h.Engine.Now()
	slow, err := h.slow.getOrMake(ctx, now, slowAge, h.slowFlows)
	if err != nil {
		return nil, err
	}
	o := &wire.Overview{StoreTime: wire.Time{Time: now}, SlowerFlows: *slow}
	for _, part := range []func(context.Context, *wire.Overview) error{h.byState, h.addRecent,
		h.addFailing, h.queuesServed, h.countMembers} {
		if err := part(ctx, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (h *Handler) byState(ctx context.Context, o *wire.Overview) error {
	for _, state := range []string{"pending", "running", "canceling", "paused", "completed", "failed", "canceled"} {
		n, err := h.Finder.CountListed(ctx, catalog.TaskPick{State: []string{state}})
		if err != nil {
			return err
		}
		o.States = append(o.States, wire.StateCount{State: state, TaskQuery: n})
	}
	return nil
}

func (h *Handler) addRecent(ctx context.Context, o *wire.Overview) error {
	for _, w := range []struct {
		name string
		long time.Duration
	}{{"1h", time.Hour}, {"24h", 24 * time.Hour}} {
		since := o.StoreTime.Add(-w.long)
		r := wire.RecentTasks{Window: w.name, Since: wire.Time{Time: since}}
		for _, part := range []struct {
			of   *wire.TaskQuery
			pick catalog.TaskPick
		}{
			{&r.Started, catalog.TaskPick{From: since}},
			{&r.Completed, catalog.TaskPick{State: []string{string(flow.TaskCompleted)}, EndedFrom: since}},
			{&r.Failed, catalog.TaskPick{State: []string{string(flow.TaskFailed)}, EndedFrom: since}},
		} {
			n, err := h.Finder.CountListed(ctx, part.pick)
			if err != nil {
				return err
			}
			*part.of = n
		}
		o.Recent = append(o.Recent, r)
	}
	return nil
}

// addFailing adds groups of the newest tasks that failed in the last day.
func (h *Handler) addFailing(ctx context.Context, o *wire.Overview) error {
	since := catalog.CeilMillis(o.StoreTime.Add(-24 * time.Hour))
	rows, err := h.Store.ListTasks(ctx, persistence.TaskFilter{Statuses: []string{string(
		flow.TaskFailed)}, EndedFrom: since, ByEnd: true, Limit: failedTasks + 1})
	if err != nil {
		return err
	}
	// of tasks that failed in the same millisecond, all are included or none
	if len(rows) > failedTasks {
		since = rows[failedTasks].EndedAt + 1
		rows = slices.DeleteFunc(rows, func(t persistence.TaskRow) bool { return t.EndedAt < since })
	}
	o.RecentFailures = wire.RecentFailures{Since: wire.Millis(since), Tasks: len(rows), Groups: groupsOf(rows, since)}
	return nil
}

// groupsOf groups failed tasks by flow and similar errors, newest first.
func groupsOf(rows []persistence.TaskRow, since int64) []wire.FailureGroup {
	type kind struct{ flow, failure string }
	groups := map[kind]*wire.FailureGroup{}
	for i := range rows {
		t := &rows[i]
		if t.Error == "" {
			continue
		}
		k := kind{cmp.Or(t.FlowSlug, t.FlowID), persistence.Failure(t.Error)}
		if groups[k] == nil {
			pick := catalog.TaskPick{Flow: []string{k.flow}, State: []string{string(flow.TaskFailed)},
				Failure: k.failure, EndedFrom: time.UnixMilli(since)}
			groups[k] = &wire.FailureGroup{Flow: k.flow, Node: failedNode(k.failure),
				Error: k.failure, LatestTask: t.ID, FailedAt: wire.Millis(t.EndedAt), Query: pick.ToQuery()}
		}
		groups[k].Count++
	}
	list := make([]wire.FailureGroup, 0, len(groups))
	for _, g := range groups {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b wire.FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.FailedAt.Compare(a.FailedAt.Time), cmp.Compare(a.LatestTask, b.LatestTask))
	})
	return list[:min(len(list), overviewRows)]
}

// failedNode returns the node at the beginning of a task's error; "" if there is none.
func failedNode(err string) string {
	if node, _, named := strings.Cut(err, ": "); named && !strings.Contains(node, " ") {
		return node
	}
	return ""
}

func (h *Handler) queuesServed(ctx context.Context, o *wire.Overview) error {
	depth, err := h.Store.QueueDepth(ctx)
	if err != nil {
		return err
	}
	serving, workers, err := h.Workers.CountServing(ctx)
	if err != nil {
		return err
	}
	o.Workers, o.QueueCount, o.Queues = workers, len(depth), []wire.Queue{}
	names := slices.SortedFunc(maps.Keys(depth), func(a, b string) int {
		return cmp.Or(cmp.Compare(depth[a].Oldest, depth[b].Oldest), cmp.Compare(a, b))
	})
	for _, service := range names[:min(len(names), overviewRows)] {
		o.Queues = append(o.Queues, work.ToQueue(service, depth[service], serving[service]))
	}
	return nil
}

func (h *Handler) countMembers(ctx context.Context, o *wire.Overview) (err error) {
	if h.Cluster != nil {
		o.Members, err = h.Cluster.CountMembers(ctx)
	}
	return err
}
