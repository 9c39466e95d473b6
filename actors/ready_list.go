package actors

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// kind says which jobs of a service a poller may have.
type kind struct {
	flow   string   // id of the only flow whose jobs are wanted; "" = of all
	labels []string // that the poller has, sorted
}

func kindOf(p engine.Poll) kind {
	k := kind{flow: p.FlowID}
	if len(p.Labels) > 0 {
		k.labels = slices.Compact(slices.Sorted(slices.Values(p.Labels)))
	}
	return k
}

// takes says whether a poller of this kind may have a job: it has all labels that the job asks for.
func (k *kind) takes(r *ref) bool {
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

func (k *kind) equal(other *kind) bool {
	return k.flow == other.flow && slices.Equal(k.labels, other.labels)
}

// ref is a job that waits for a poller.
type ref struct {
	key     jobKey
	service string
	flow    string // "" = not known
	labels  []string
	at      int64        // when it was enqueued
	turn    string       // among those of the same time
	size    int          // bytes that a poller is sent
	refused int          // how often its task could not answer a claim
	gone    bool         // withdrawn or claimed meanwhile
	on      []*readyList // where it is, until it is gone
}

func refOf(j *flow.Job) *ref {
	return &ref{key: jobKey{j.Task, j.Address}, service: j.Exec.Service, flow: j.Plan.FlowID, labels: j.Exec.Labels, at: j.EnqueuedAt, turn: j.Turn, size: j.Size()}
}

// before says whether a job is handed out before another one: the one that has waited longer is.
func (r *ref) before(other *ref) bool {
	return r.at < other.at || r.at == other.at && r.turn < other.turn
}

// readyList holds those jobs of a service that one kind of poller may have. A job is on the lists of all
// kinds that are known; what a new kind may have is in the store.
type readyList struct {
	service string
	kind
	refs      []*ref
	dead      int   // of those that are gone
	spilled   bool  // the store may hold more than refs
	behind    bool  // there is to be another search …
	behindAt  int64 // … behind that time
	fetching  bool
	read      bool  // the store was asked for its jobs, also if that failed
	looking   bool  // a look for all there are has yet to come to its end
	afterAt   int64 // position of the last fetch
	afterTurn string
}

// fetchRows is how many jobs are fetched from the store at once, and of how many a list that has
// fewer is filled up: else new jobs would be handed out before old ones that only the store has.
const fetchRows = 500

// maxReadyLists bounds how many services and kinds of pollers are remembered, because anybody may ask for any.
const maxReadyLists = 10_000

// find is the list of a service for a kind of pollers; nil = there is none.
func (q *queue) find(service string, k *kind) *readyList {
	for _, s := range q.ready[service] {
		if s.kind.equal(k) {
			return s
		}
	}
	return nil
}

// readyList of a service for a kind of pollers; what the store holds for one not seen before is not known yet, unless
// it is known to hold nothing of that service.
func (q *queue) readyList(service string, k kind) *readyList {
	if s := q.find(service, &k); s != nil {
		return s
	}
	_, known := q.ready[service]
	if q.lists >= maxReadyLists {
		q.clear()
	}
	s := &readyList{service: strings.Clone(service), kind: k, spilled: known || !q.learned}
	q.ready[s.service] = append(q.ready[s.service], s)
	q.lists++
	return s
}

// readyListsFor are those that a job belongs on. There is always one for pollers who want nothing special.
func (q *queue) readyListsFor(r *ref) []*readyList {
	q.readyList(r.service, kind{})
	all := q.ready[r.service]
	if len(all) == 1 && len(r.labels) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(l *readyList) bool { return !l.kind.takes(r) })
}

// clear forgets lists that are empty. Of which services the store may still have jobs has to be learned again.
func (q *queue) clear() {
	q.lists, q.learned, q.surveyed = 0, false, false
	for service, all := range q.ready {
		q.ready[service] = slices.DeleteFunc(all, func(l *readyList) bool { return !l.fetching && l.first() == nil })
		q.lists += len(q.ready[service])
	}
	maps.DeleteFunc(q.ready, func(_ string, all []*readyList) bool { return len(all) == 0 })
}

// spill leaves a job in the store that was enqueued at a time, 0 = any: there is a search from there on. One that is under way
// may be past it: then there is another one.
func (l *readyList) spill(at int64) {
	before := max(at-1, 0)
	switch {
	case !l.spilled:
		l.spilled, l.afterAt, l.afterTurn = true, before, ""
	case !l.fetching && l.afterAt <= before: // it comes to that
	case l.behind:
		l.behindAt = min(l.behindAt, before)
	default:
		l.behind, l.behindAt = true, before
	}
}

// searched notes that there is nothing more where a search was.
func (l *readyList) searched() {
	l.looking = l.looking && l.behind && l.behindAt == 0
	l.spilled, l.behind, l.afterAt, l.afterTurn = l.behind, false, l.behindAt, ""
}

// put adds a job in the order of time, unless it is there.
func (l *readyList) put(r *ref) {
	if slices.Contains(r.on, l) {
		return
	}
	r.on = append(r.on, l)
	i := len(l.refs)
	for i > 0 && r.before(l.refs[i-1]) {
		i--
	}
	l.refs = slices.Insert(l.refs, i, r)
}

// first is the oldest job on a list.
func (l *readyList) first() *ref {
	for len(l.refs) > 0 && l.refs[0].gone {
		l.refs[0] = nil
		l.refs = l.refs[1:]
		l.dead--
	}
	if len(l.refs) == 0 {
		return nil
	}
	return l.refs[0]
}

// manyDead is from how many on jobs that are gone are cleared away before they are reached: on the list of
// a kind that nobody polls for any longer they never are.
const manyDead = 64

// dropped notes that a job on the list is gone.
func (l *readyList) dropped() {
	l.dead++
	if l.dead > manyDead && l.dead > len(l.refs)/2 {
		l.refs = slices.DeleteFunc(l.refs, func(r *ref) bool { return r.gone })
		l.dead = 0
	}
}
