// Package stats tells how tasks of a flow go, from their journals: how long they take, and what their nodes do.
//
// It reads events and keeps numbers, so a journal may be longer than memory. A journal counts once it has been read to its end.
package stats

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Times are quantiles of durations, in milliseconds: each is one that has been measured.
type Times struct{ P50, P95, P99, Max int64 }

// TimesOf are those of durations, which it sorts.
func TimesOf(ms []int64) Times {
	if len(ms) == 0 {
		return Times{}
	}
	slices.Sort(ms)
	rank := func(percent int) int64 { return ms[(len(ms)*percent+99)/100-1] }
	return Times{rank(50), rank(95), rank(99), ms[len(ms)-1]}
}

// Node is how a node of a flow has gone.
type Node struct {
	Scope, Key string // as in the graph of its plan
	Visits     int    // that began
	Failures   int    // visits that failed
	Retries    int    // attempts after the first one, and tries of the whole step
	Times      Times  // of its visits, from beginning to end
	LastFailed string // the first task that was added in which it failed
}

// Stats are of all tasks that were added.
type Stats struct {
	nodes map[place]*node
	tasks []int64
}

type place struct{ scope, key string }

type node struct {
	visits, failures, retries int
	ms                        []int64
	lastFailed                string
}

// New has no task yet.
func New() *Stats { return &Stats{nodes: map[place]*node{}} }

// Tasks is how many were added, and how long they took.
func (s *Stats) Tasks() (int, Times) { return len(s.tasks), TimesOf(slices.Clone(s.tasks)) }

// Nodes are those that were there in some task, in order of scope and key.
func (s *Stats) Nodes() []Node {
	list := make([]Node, 0, len(s.nodes))
	for at, n := range s.nodes {
		list = append(list, Node{at.scope, at.key, n.visits, n.failures, n.retries, TimesOf(slices.Clone(n.ms)), n.lastFailed})
	}
	slices.SortFunc(list, func(a, b Node) int { return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key)) })
	return list
}

// Add adds a task whose journal has been read. One that has not ended is not added.
func (s *Stats) Add(t *Task) bool {
	if t.ended == 0 {
		return false
	}
	s.tasks = append(s.tasks, t.ended-t.begun)
	for at, n := range t.nodes {
		all := s.nodes[at]
		if all == nil {
			all = &node{}
			s.nodes[at] = all
		}
		all.visits, all.failures, all.retries = all.visits+n.visits, all.failures+n.failures, all.retries+n.retries
		all.ms = append(all.ms, n.ms...)
		if n.failures > 0 {
			all.lastFailed = cmp.Or(all.lastFailed, t.id)
		}
	}
	return true
}

// Task is what the journal of one tells.
type Task struct {
	id           string
	begun, ended int64
	nodes        map[place]*node
	open         map[flow.Address]int64 // steps by when they were entered
	scopes       map[string]string      // of the plan, by those of the task
}

// NewTask begins before the first event of a journal.
func NewTask(id string) *Task {
	return &Task{id: id, nodes: map[place]*node{}, open: map[flow.Address]int64{}, scopes: map[string]string{}}
}

// Event adds an event of the journal, in its turn.
func (t *Task) Event(e *flow.Event) {
	switch e.Type {
	case flow.TaskCreated:
		t.begun = e.At
	case flow.TaskRetried:
		t.ended = 0
	case flow.TaskEnded:
		t.ended = e.At
	case flow.StepEntered:
		t.open[stepOf(e)] = e.At
		t.node(e).visits++
	case flow.StepEnded:
		t.stepEnded(e)
	case flow.AttemptsStarted:
		if e.Attempt > 1 {
			t.node(e).retries += e.Total
		}
	}
}

func (t *Task) stepEnded(e *flow.Event) {
	if failed := e.Error != "" || e.Status == string(flow.StepFailed); failed {
		t.node(e).failures++
	}
	if e.Attempt > 0 {
		t.node(e).retries++
	}
	if at, entered := t.open[stepOf(e)]; entered {
		n := t.node(e)
		n.ms = append(n.ms, e.At-at)
		delete(t.open, stepOf(e))
	}
}

func stepOf(e *flow.Event) flow.Address {
	return flow.Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit}
}

func (t *Task) node(e *flow.Event) *node {
	scope, known := t.scopes[e.Scope]
	if !known {
		scope = planScope(e.Scope)
		t.scopes[e.Scope] = scope
	}
	at := place{scope, e.Node}
	if t.nodes[at] == nil {
		t.nodes[at] = &node{}
	}
	return t.nodes[at]
}

// closing is where a task undoes and cleans up, whichever time.
const closing = "~"

// planScope is a task's scope as the plan has it: without visits.
func planScope(scope string) string {
	at, inside := flow.ParentOf(scope)
	switch {
	case inside:
		return flow.ScopeKey(planScope(at.Scope), at.Node)
	case strings.HasPrefix(scope, closing):
		return closing
	}
	return scope
}
