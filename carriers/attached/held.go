package attached

import (
	"cmp"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// A function that is a flow is held by its task if nothing has it, or if the code of its worker
// does not fit its history. When another worker with it attaches, here or to another member, the
// task delivers it again.

// maxHeld is the maximum number of held functions that a member notes. Further ones wait in the
// queue instead.
const maxHeld = 100_000

// heldFunctions are functions that are held until another worker attaches: their deliveries, by
// service.
type heldFunctions struct {
	byService map[string]map[jobKey]int
	count     int
}

// noteRefused notes a function that is refused and will be held by its task. It returns true for
// all other jobs. It returns false for a function that has to wait in the queue instead: it undoes
// its work, which its task does not hold back, or too many are held.
func (h *heldFunctions) noteRefused(p carriers.Passage, exec *flow.Exec) bool {
	if exec.Type != flow.ExecCode || p.Foreign() {
		return true
	}
	return !p.Job().Function.Undoes && h.noteHeld(p)
}

// noteHeld notes a function that will be held. It returns false if there are too many.
func (h *heldFunctions) noteHeld(p carriers.Passage) bool {
	if h.count >= maxHeld {
		return false
	}
	job := p.Job()
	exec := job.Exec
	if h.byService == nil {
		h.byService = map[string]map[jobKey]int{}
	}
	if h.byService[exec.Service] == nil {
		h.byService[exec.Service] = map[jobKey]int{}
	}
	held := h.byService[exec.Service]
	before := len(held)
	held[jobKey{job.Task, job.Address}] = job.Given
	h.count += len(held) - before
	return true
}

// takeHeld returns orders that release the held functions of a service, and forgets these.
func (h *heldFunctions) takeHeld(service string) (orders engine.Orders) {
	held := h.byService[service]
	delete(h.byService, service)
	h.count -= len(held)
	for _, key := range slices.SortedFunc(maps.Keys(held), func(a, b jobKey) int {
		return cmp.Or(cmp.Compare(a.task, b.task), a.at.Compare(b.at))
	}) {
		orders = append(orders, engine.Order{Task: key.task, Command: flow.ReleaseFunction{Address: key.at, Given: held[key]}})
	}
	return orders
}

// releaseHeld releases the held functions of services that another worker offers. The caller holds
// the lock.
func (s *Sessions) releaseHeld(services []string) {
	if s.bring == nil || s.heldFunctions.count == 0 {
		return
	}
	var orders engine.Orders
	for _, service := range services {
		orders = append(orders, s.heldFunctions.takeHeld(service)...)
	}
	if len(orders) > 0 {
		s.done.Run(func() { s.sendReleases(orders) })
	}
}

// sendReleases sends orders until all tasks have answered.
func (s *Sessions) sendReleases(orders engine.Orders) {
	for len(orders) > 0 && s.ctx.Err() == nil {
		var again engine.Orders
		for some := range slices.Chunk(orders, bringBatch) {
			ctx, cancel := s.host.Within(s.ctx, bringTimeout)
			outcomes := s.bring(ctx, some)
			cancel()
			for i, o := range outcomes {
				switch {
				case o.Err == nil, flow.ErrorKindOf(o.Err) == flow.Conflict, flow.ErrorKindOf(o.Err) == flow.NotFound:
				default:
					again = append(again, some[i])
				}
			}
		}
		orders = again
		over, stop := s.host.Timer(bringRetry)
		s.host.Wait(func() bool { return host.Closed(over) || s.ctx.Err() != nil || len(orders) == 0 })
		stop()
	}
}
