package actors

import "container/heap"

// readyHeap holds the lists with jobs for a poller, ordered by their oldest jobs.
type readyHeap []*readyList

func (q *queue) readyFor(p *poller) readyHeap {
	var all readyHeap
	for _, service := range p.Services {
		if s := q.findList(service, &p.jobFilter); s != nil && s.firstJob() != nil && !q.isOutranked(p, service) {
			all = append(all, s)
		}
	}
	heap.Init(&all)
	return all
}

// restoreOrder restores the order after a job was taken from the first list.
func (h *readyHeap) restoreOrder() {
	if (*h)[0].firstJob() == nil {
		heap.Pop(h)
		return
	}
	heap.Fix(h, 0)
}

func (h readyHeap) Len() int           { return len(h) }
func (h readyHeap) Less(i, j int) bool { return h[i].refs[0].isBefore(h[j].refs[0]) }
func (h readyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *readyHeap) Push(x any)        { *h = append(*h, x.(*readyList)) }
func (h *readyHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
