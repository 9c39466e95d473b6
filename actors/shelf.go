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
	at      int64    // when it was enqueued
	turn    string   // among those of the same time
	size    int      // bytes that a poller is sent
	refused int      // how often its task could not answer a claim
	gone    bool     // withdrawn or claimed meanwhile
	on      []*shelf // where it is, until it is gone
}

func refOf(j *flow.Job) *ref {
	return &ref{key: jobKey{j.Task, j.Address}, service: j.Exec.Service, flow: j.Plan.FlowID, labels: j.Exec.Labels, at: j.EnqueuedAt, turn: j.Turn, size: j.Size()}
}

// before says whether a job is handed out before another one: the one that has waited longer is.
func (r *ref) before(other *ref) bool {
	return r.at < other.at || r.at == other.at && r.turn < other.turn
}

// shelf holds those jobs of a service that one kind of poller may have. A job is on the shelves of all
// kinds that are known; what a new kind may have is in the store.
type shelf struct {
	service string
	kind
	refs      []*ref
	dead      int   // of those that are gone
	spilled   bool  // the store may hold more than refs
	behind    bool  // there is to be another search …
	behindAt  int64 // … behind that time
	fetching  bool
	looking   bool  // a look for all there are has yet to come to its end
	afterAt   int64 // position of the last fetch
	afterTurn string
}

// fetchRows is how many jobs are fetched from the store at once, and of how many a shelf that has
// fewer is filled up: else new jobs would be handed out before old ones that only the store has.
const fetchRows = 500

// maxShelves bounds how many services and kinds of pollers are remembered, because anybody may ask for any.
const maxShelves = 10_000

// find is the shelf of a service for a kind of pollers; nil = there is none.
func (q *queue) find(service string, k *kind) *shelf {
	for _, s := range q.ready[service] {
		if s.kind.equal(k) {
			return s
		}
	}
	return nil
}

// shelf of a service for a kind of pollers; what the store holds for one not seen before is not known yet, unless
// it is known to hold nothing of that service.
func (q *queue) shelf(service string, k kind) *shelf {
	if s := q.find(service, &k); s != nil {
		return s
	}
	_, known := q.ready[service]
	if q.shelves >= maxShelves {
		q.clear()
	}
	s := &shelf{service: strings.Clone(service), kind: k, spilled: known || !q.learned}
	q.ready[s.service] = append(q.ready[s.service], s)
	q.shelves++
	return s
}

// shelvesFor are those that a job belongs on. There is always one for pollers who want nothing special.
func (q *queue) shelvesFor(r *ref) []*shelf {
	q.shelf(r.service, kind{})
	all := q.ready[r.service]
	if len(all) == 1 && len(r.labels) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s *shelf) bool { return !s.kind.takes(r) })
}

// clear forgets shelves that are empty. Of which services the store may still have jobs has to be learned again.
func (q *queue) clear() {
	q.shelves, q.learned = 0, false
	for service, all := range q.ready {
		q.ready[service] = slices.DeleteFunc(all, func(s *shelf) bool { return !s.fetching && s.first() == nil })
		q.shelves += len(q.ready[service])
	}
	maps.DeleteFunc(q.ready, func(_ string, all []*shelf) bool { return len(all) == 0 })
}

// spill leaves a job in the store that was enqueued at a time, 0 = any: there is a search from there on. One that is under way
// may be past it: then there is another one.
func (s *shelf) spill(at int64) {
	before := max(at-1, 0)
	switch {
	case !s.spilled:
		s.spilled, s.afterAt, s.afterTurn = true, before, ""
	case !s.fetching && s.afterAt <= before: // it comes to that
	case s.behind:
		s.behindAt = min(s.behindAt, before)
	default:
		s.behind, s.behindAt = true, before
	}
}

// searched notes that there is nothing more where a search was.
func (s *shelf) searched() {
	s.looking = s.looking && s.behind && s.behindAt == 0
	s.spilled, s.behind, s.afterAt, s.afterTurn = s.behind, false, s.behindAt, ""
}

// put adds a job in the order of time, unless it is there.
func (s *shelf) put(r *ref) {
	if slices.Contains(r.on, s) {
		return
	}
	r.on = append(r.on, s)
	i := len(s.refs)
	for i > 0 && r.before(s.refs[i-1]) {
		i--
	}
	s.refs = slices.Insert(s.refs, i, r)
}

// first is the oldest job on a shelf.
func (s *shelf) first() *ref {
	for len(s.refs) > 0 && s.refs[0].gone {
		s.refs[0] = nil
		s.refs = s.refs[1:]
		s.dead--
	}
	if len(s.refs) == 0 {
		return nil
	}
	return s.refs[0]
}

// manyDead is from how many on jobs that are gone are cleared away before they are reached: on the shelf of
// a kind that nobody polls for any longer they never are.
const manyDead = 64

// dropped notes that a job on the shelf is gone.
func (s *shelf) dropped() {
	s.dead++
	if s.dead > manyDead && s.dead > len(s.refs)/2 {
		s.refs = slices.DeleteFunc(s.refs, func(r *ref) bool { return r.gone })
		s.dead = 0
	}
}
