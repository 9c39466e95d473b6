package v1

import (
	"context"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *jobHandler) listQueues(ctx context.Context, in *struct{ Paging }) (*bodyResponse[wire.Page[wire.Queue]], error) {
	at, _, err := in.parseCursor()
	if err != nil {
		return nil, err
	}
	depth, err := h.store.QueueDepth(ctx)
	if err != nil {
		return nil, err
	}
	serving, _, err := h.workers.countServing(ctx)
	if err != nil {
		return nil, err
	}
	services := slices.Sorted(maps.Keys(depth))
	services = slices.DeleteFunc(services, func(service string) bool { return service <= at.name })
	services, more := cutPage(services, in.Limit)
	page := wire.Page[wire.Queue]{Items: make([]wire.Queue, len(services))}
	for i, service := range services {
		page.Items[i] = toQueue(service, depth[service], serving[service])
	}
	if more {
		page.Next = listCursor{name: services[len(services)-1]}.String()
	}
	return &bodyResponse[wire.Page[wire.Queue]]{page}, nil
}

func toQueue(service string, d persistence.QueueStat, workers int) wire.Queue {
	return wire.Queue{Service: service, Waiting: d.Waiting, Tasks: d.Tasks, Workers: workers, Oldest: wire.Millis(d.Oldest)}
}

// countServing counts the online workers, and those that offer each service.
func (h *workerHandler) countServing(ctx context.Context) (services map[string]int, all wire.WorkerCount, err error) {
	known, err := h.registry.List(ctx)
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
