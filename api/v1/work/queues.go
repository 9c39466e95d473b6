package work

import (
	"context"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *JobHandler) listQueues(ctx context.Context, in *struct{ route.Paging }) (*route.Response[wire.Page[wire.Queue]], error) {
	at, _, err := in.ParseCursor()
	if err != nil {
		return nil, err
	}
	depth, err := h.Store.QueueDepth(ctx)
	if err != nil {
		return nil, err
	}
	serving, _, err := h.Workers.CountServing(ctx)
	if err != nil {
		return nil, err
	}
	services := slices.Sorted(maps.Keys(depth))
	services = slices.DeleteFunc(services, func(service string) bool { return service <= at.Name })
	services, more := route.CutPage(services, in.Limit)
	page := wire.Page[wire.Queue]{Items: make([]wire.Queue, len(services))}
	for i, service := range services {
		page.Items[i] = ToQueue(service, depth[service], serving[service])
	}
	if more {
		page.Next = route.Cursor{Name: services[len(services)-1]}.String()
	}
	return &route.Response[wire.Page[wire.Queue]]{Body: page}, nil
}

// ToQueue converts the depth of a queue, with the number of workers that serve it.
func ToQueue(service string, d persistence.QueueStat, workers int) wire.Queue {
	return wire.Queue{Service: service, Waiting: d.Waiting, Tasks: d.Tasks, Workers: workers, OldestAt: wire.Millis(d.Oldest)}
}

// CountServing counts the online workers, and those that offer each service.
func (h *WorkerHandler) CountServing(ctx context.Context) (services map[string]int, all wire.WorkerCounts, err error) {
	known, err := h.Registry.List(ctx)
	if err != nil {
		return nil, all, err
	}
	services = map[string]int{}
	for i := range known {
		if !h.isOnline(&known[i]) {
			all.Offline++
			continue
		}
		all.Online++
		for _, service := range slices.Compact(slices.Sorted(slices.Values(known[i].Services))) {
			services[service]++
		}
	}
	return services, all, nil
}
