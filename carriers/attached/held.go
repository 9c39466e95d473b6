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

// A task holds a function flow if no carrier has the function, or if the code of its worker does
// not match its history. When a worker with the function attaches to any member, the task delivers
// it again.

// maxHeld is the maximum number of held functions that a member remembers. Further ones wait in the
// queue instead.
const maxHeld = 100_000

// heldFunctions are the held functions by service, with their delivery numbers. They are released
// when another worker attaches.
type heldFunctions struct {
	byService map[string]map[jobKey]int
	count     int
}

// noteRefused remembers a refused function that its task will hold. It returns true for all other
// jobs. It returns false if the function must wait in the queue instead: the task does not hold a
// function that undoes its work, or too many are held.
func (h *heldFunctions) noteRefused(p carriers.Passage, exec *flow.Exec) bool {
	if exec.Type != flow.ExecCode || p.Foreign() {
		return true
	}
	return !p.Job().Function.Undoes && h.noteHeld(p)
}

// noteHeld remembers a function that will be held. It returns false if there are too many.
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

// takeHeld removes the held functions of a service, and returns the orders that release them.
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

// releaseHeld releases the held functions of services that a new worker offers. The caller holds
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

// sendReleases sends release orders until all tasks have answered.
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
