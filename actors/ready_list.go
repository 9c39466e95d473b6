package actors

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// jobFilter selects the jobs of a service that a poller may have.
type jobFilter struct {
	flow   string   // id of a flow; "" means all flows
	labels []string // labels of the poller, sorted
}

func kindOf(p engine.Poll) jobFilter {
	k := jobFilter{flow: p.FlowID}
	if len(p.Labels) > 0 {
		k.labels = slices.Compact(slices.Sorted(slices.Values(p.Labels)))
	}
	return k
}

// matchesJob reports whether a poller with this filter may have a job: the flow matches, and the
// poller has all labels that the job requires.
func (k *jobFilter) matchesJob(r *queuedJob) bool {
	if k.flow != "" && k.flow != r.flow {
		return false
	}
	for _, label := range r.labels {
		if _, has := slices.BinarySearch(k.labels, label); !has {
			return false
		}
	}
	return true
}

func (k *jobFilter) equal(other *jobFilter) bool {
	return k.flow == other.flow && slices.Equal(k.labels, other.labels)
}

// queuedJob is a job that waits for a poller.
type queuedJob struct {
	key     engine.JobKey
	service string
	flow    string // "" if not known
	labels  []string
	at      int64        // when the job was enqueued, in Unix milliseconds
	turn    string       // order among jobs with equal times
	size    int          // bytes that a poller gets
	refused int          // number of claims that the task could not answer
	gone    bool         // the job was withdrawn or claimed
	lists   []*readyList // lists that contain the job, until it is gone
}

func queuedJobOf(j *flow.Job) *queuedJob {
	return &queuedJob{key: engine.JobKey{Task: j.Task, At: j.Address}, service: j.Exec.Service, flow: j.Plan.FlowID,
		labels: j.Exec.Labels, at: j.EnqueuedAt, turn: j.Turn, size: j.Size()}
}

// isBefore reports whether a job is handed out before another one, because it was enqueued earlier.
func (r *queuedJob) isBefore(other *queuedJob) bool {
	return r.at < other.at || r.at == other.at && r.turn < other.turn
}

// readyList holds the jobs of a service that match one filter. A job is on all existing lists that
// match. A new list reads its jobs from the store.
type readyList struct {
	service string
	jobFilter
	refs           []*queuedJob
	goneCount      int   // number of gone jobs in refs
	spilled        bool  // the store may hold jobs that refs lacks
	searchBehind   bool  // another search is needed after the current one
	searchBehindAt int64 // start time of the next search
	fetching       bool
	read           bool  // the first read of the list has succeeded or failed
	fullSearch     bool  // a search for all jobs has not ended yet
	afterAt        int64 // time of the last job that was read from the store
	afterTurn      string
}

// fetchRows is how many jobs one read returns. A list with fewer jobs is filled up from the store.
// The list needs that many jobs, so that a new job does not overtake old jobs of the store.
const fetchRows = 500

// maxReadyLists bounds the number of lists in memory, because clients choose services and filters
// freely.
const maxReadyLists = 10_000

// findList returns the list of a service for a filter; nil if there is none.
func (q *queue) findList(service string, k *jobFilter) *readyList {
	for _, s := range q.ready[service] {
		if s.jobFilter.equal(k) {
			return s
		}
	}
	return nil
}

// readyList returns the list of a service for a filter. For a new filter, it creates a list that
// must search the store, unless the store has no jobs of the service.
func (q *queue) readyList(service string, k jobFilter) *readyList {
	if s := q.findList(service, &k); s != nil {
		return s
	}
	_, known := q.ready[service]
	if q.listCount >= maxReadyLists {
		q.dropEmptyLists()
	}
	s := &readyList{service: strings.Clone(service), jobFilter: k, spilled: known || !q.servicesKnown}
	q.ready[s.service] = append(q.ready[s.service], s)
	q.listCount++
	return s
}

// readyListsFor returns the lists that a job belongs to. A list without a filter always exists.
func (q *queue) readyListsFor(r *queuedJob) []*readyList {
	q.readyList(r.service, jobFilter{})
	all := q.ready[r.service]
	if len(all) == 1 && len(r.labels) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(l *readyList) bool { return !l.jobFilter.matchesJob(r) })
}

// dropEmptyLists removes empty lists. Afterwards, the services must be read from the store again.
func (q *queue) dropEmptyLists() {
	q.listCount, q.servicesKnown, q.servicesAsked = 0, false, false
	for service, all := range q.ready {
		q.ready[service] = slices.DeleteFunc(all, func(l *readyList) bool { return !l.fetching && l.firstJob() == nil })
		q.listCount += len(q.ready[service])
	}
	maps.DeleteFunc(q.ready, func(_ string, all []*readyList) bool { return len(all) == 0 })
}

// spillFrom records that the store has a job with the given time (0 for any time), and requests a
// search from there. If a running search may have passed the job, another search follows.
func (l *readyList) spillFrom(at int64) {
	before := max(at-1, 0)
	switch {
	case !l.spilled:
		l.spilled, l.afterAt, l.afterTurn = true, before, ""
	case !l.fetching && l.afterAt <= before: // the running search will reach the job
	case l.searchBehind:
		l.searchBehindAt = min(l.searchBehindAt, before)
	default:
		l.searchBehind, l.searchBehindAt = true, before
	}
}

// finishSearch records that a search has reached its end.
func (l *readyList) finishSearch() {
	l.fullSearch = l.fullSearch && l.searchBehind && l.searchBehindAt == 0
	l.spilled, l.searchBehind, l.afterAt, l.afterTurn = l.searchBehind, false, l.searchBehindAt, ""
}

// insertJob adds a job in order of time, unless the list contains it.
func (l *readyList) insertJob(r *queuedJob) {
	if slices.Contains(r.lists, l) {
		return
	}
	r.lists = append(r.lists, l)
	i := len(l.refs)
	for i > 0 && r.isBefore(l.refs[i-1]) {
		i--
	}
	l.refs = slices.Insert(l.refs, i, r)
}

// firstJob returns the oldest job of a list; nil if it is empty.
func (l *readyList) firstJob() *queuedJob {
	for len(l.refs) > 0 && l.refs[0].gone {
		l.refs[0] = nil
		l.refs = l.refs[1:]
		l.goneCount--
	}
	if len(l.refs) == 0 {
		return nil
	}
	return l.refs[0]
}

// manyGone is the number of gone jobs above which they are removed before they reach the front. In
// a list without pollers, they would never reach the front.
const manyGone = 64

// noteRemoved records that a job of the list is gone.
func (l *readyList) noteRemoved() {
	l.goneCount++
	if l.goneCount > manyGone && l.goneCount > len(l.refs)/2 {
		l.refs = slices.DeleteFunc(l.refs, func(r *queuedJob) bool { return r.gone })
		l.goneCount = 0
	}
}
