package actors

import "container/heap"

// readyHeap is the lists that have something for a poller, the one with the oldest job first.
type readyHeap []*readyList

func (q *queue) readyFor(p *poller) readyHeap {
	var all readyHeap
	for _, service := range p.Services {
		if s := q.find(service, &p.kind); s != nil && s.first() != nil && !q.outranked(p, service) {
			all = append(all, s)
		}
	}
	heap.Init(&all)
	return all
}

// next puts the oldest job first again when the first one has been taken.
func (h *readyHeap) next() {
	if (*h)[0].first() == nil {
		heap.Pop(h)
		return
	}
	heap.Fix(h, 0)
}

func (h readyHeap) Len() int           { return len(h) }
func (h readyHeap) Less(i, j int) bool { return h[i].refs[0].before(h[j].refs[0]) }
func (h readyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *readyHeap) Push(x any)        { *h = append(*h, x.(*readyList)) }
func (h *readyHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
