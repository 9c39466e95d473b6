package actors

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// jobFilter says which jobs of a service a poller may have.
type jobFilter struct {
	flow   string   // id of the only flow whose jobs are wanted; "" = of all
	labels []string // that the poller has, sorted
}

func kindOf(p engine.Poll) jobFilter {
	k := jobFilter{flow: p.FlowID}
	if len(p.Labels) > 0 {
		k.labels = slices.Compact(slices.Sorted(slices.Values(p.Labels)))
	}
	return k
}

// matchesJob reports whether a poller of this kind may have a job: it has all labels that the job
// asks for.
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
	key     jobKey
	service string
	flow    string // "" = not known
	labels  []string
	at      int64        // when it was enqueued
	turn    string       // among those of the same time
	size    int          // bytes that a poller is sent
	refused int          // how often its task could not answer a claim
	gone    bool         // withdrawn or claimed meanwhile
	lists   []*readyList // where it is, until it is gone
}

func queuedJobOf(j *flow.Job) *queuedJob {
	return &queuedJob{key: jobKey{j.Task, j.Address}, service: j.Exec.Service, flow: j.Plan.FlowID, labels: j.Exec.Labels, at: j.EnqueuedAt, turn: j.Turn, size: j.Size()}
}

// isBefore reports whether a job is handed out before another one: the one that has waited longer
// is.
func (r *queuedJob) isBefore(other *queuedJob) bool {
	return r.at < other.at || r.at == other.at && r.turn < other.turn
}

// readyList holds those jobs of a service that one kind of poller may have. A job is on the lists
// of all kinds that are known; what a new kind may have is in the store.
type readyList struct {
	service string
	jobFilter
	refs           []*queuedJob
	goneCount      int   // of those that are gone
	spilled        bool  // the store may hold more than refs
	searchBehind   bool  // there is to be another search …
	searchBehindAt int64 // … behind that time
	fetching       bool
	read           bool  // the store was asked for its jobs, also if that failed
	fullSearch     bool  // a look for all there are has yet to come to its end
	afterAt        int64 // position of the last fetch
	afterTurn      string
}

// fetchRows is how many jobs are fetched from the store at once, and of how many a list that has
// fewer is filled up: else new jobs would be handed out before old ones that only the store has.
const fetchRows = 500

// maxReadyLists bounds how many services and kinds of pollers are remembered, because anybody may
// ask for any.
const maxReadyLists = 10_000

// findList is the list of a service for a kind of pollers; nil = there is none.
func (q *queue) findList(service string, k *jobFilter) *readyList {
	for _, s := range q.ready[service] {
		if s.jobFilter.equal(k) {
			return s
		}
	}
	return nil
}

// readyList of a service for a kind of pollers; what the store holds for one not seen before is not
// known yet, unless it is known to hold nothing of that service.
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

// readyListsFor are those that a job belongs on. There is always one for pollers who want nothing
// special.
func (q *queue) readyListsFor(r *queuedJob) []*readyList {
	q.readyList(r.service, jobFilter{})
	all := q.ready[r.service]
	if len(all) == 1 && len(r.labels) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(l *readyList) bool { return !l.jobFilter.matchesJob(r) })
}

// dropEmptyLists forgets lists that are empty. Of which services the store may still have jobs has
// to be learned again.
func (q *queue) dropEmptyLists() {
	q.listCount, q.servicesKnown, q.servicesAsked = 0, false, false
	for service, all := range q.ready {
		q.ready[service] = slices.DeleteFunc(all, func(l *readyList) bool { return !l.fetching && l.firstJob() == nil })
		q.listCount += len(q.ready[service])
	}
	maps.DeleteFunc(q.ready, func(_ string, all []*readyList) bool { return len(all) == 0 })
}

// spillFrom leaves a job in the store that was enqueued at a time, 0 = any: there is a search from
// there on. One that is under way may be past it: then there is another one.
func (l *readyList) spillFrom(at int64) {
	before := max(at-1, 0)
	switch {
	case !l.spilled:
		l.spilled, l.afterAt, l.afterTurn = true, before, ""
	case !l.fetching && l.afterAt <= before: // it comes to that
	case l.searchBehind:
		l.searchBehindAt = min(l.searchBehindAt, before)
	default:
		l.searchBehind, l.searchBehindAt = true, before
	}
}

// finishSearch notes that there is nothing more where a search was.
func (l *readyList) finishSearch() {
	l.fullSearch = l.fullSearch && l.searchBehind && l.searchBehindAt == 0
	l.spilled, l.searchBehind, l.afterAt, l.afterTurn = l.searchBehind, false, l.searchBehindAt, ""
}

// insertJob adds a job in the order of time, unless it is there.
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

// firstJob is the oldest job on a list.
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

// manyGone is from how many on jobs that are gone are cleared away before they are reached: on the
// list of a kind that nobody polls for any longer they never are.
const manyGone = 64

// noteRemoved notes that a job on the list is gone.
func (l *readyList) noteRemoved() {
	l.goneCount++
	if l.goneCount > manyGone && l.goneCount > len(l.refs)/2 {
		l.refs = slices.DeleteFunc(l.refs, func(r *queuedJob) bool { return r.gone })
		l.goneCount = 0
	}
}
