// Package stats collects statistics of tasks: how many start and end, how long they take, and the
// same for their nodes.
//
// Each member adds up what it has stored (Counts) by subject (Key). Counts can be added in any
// order, so the sums of several members, or of parts of a period, equal the count of the whole.
package stats

import (
	"encoding/binary"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Key is the subject of Counts. Without a Node the subject is the tasks themselves; without a Flow,
// the tasks of all flows.
type Key struct {
	Flow    string // id of the flow
	Version string // id of the version; "" for all flows
	Scope   string // scope of the plan, without visits
	Node    string
}

// Other is the name of the node that sums up all nodes beyond the limit.
const Other = "(other)"

// Counts are the statistics of a node, or of tasks.
type Counts struct {
	Began     int64 // tasks only, because a node is counted when it ends
	Completed int64
	Failed    int64
	Skipped   int64 // nodes only
	Canceled  int64 // tasks only
	Retried   int64 // retried attempts and repeated steps
	Units     int64 // units of ended steps

	Took Sketch // duration from start to end of those that started
	Wait Sketch // time of attempts until their claim, if they need a claim

	LastFailed   string // newest task that failed, or in which the node failed
	LastFailedAt int64
}

// Ended returns the number of tasks or steps that ended, with any result.
func (c *Counts) Ended() int64 { return c.Completed + c.Failed + c.Skipped + c.Canceled }

// Empty reports whether nothing was counted.
func (c *Counts) Empty() bool { return c.Began+c.Ended()+c.Retried+c.Wait.N() == 0 }

// Add adds other counts.
func (c *Counts) Add(o *Counts) {
	mine := c.counterFields()
	for i, n := range o.counterFields() {
		*mine[i] += *n
	}
	c.Took.Add(&o.Took)
	c.Wait.Add(&o.Wait)
	if o.LastFailedAt > c.LastFailedAt {
		c.LastFailed, c.LastFailedAt = o.LastFailed, o.LastFailedAt
	}
}

func (c *Counts) counterFields() [7]*int64 {
	return [7]*int64{&c.Began, &c.Completed, &c.Failed, &c.Skipped, &c.Canceled, &c.Retried, &c.Units}
}

// storedFormat is the first byte of the stored form.
const storedFormat = 1

// Append appends the stored form of the counts. Decode reads it.
func (c *Counts) Append(b []byte) []byte {
	b = append(b, storedFormat)
	for _, n := range c.counterFields() {
		b = binary.AppendUvarint(b, uint64(*n))
	}
	b = c.Wait.appendTo(c.Took.appendTo(b))
	return append(binary.AppendUvarint(b, uint64(c.LastFailedAt)), c.LastFailed...)
}

// Decode reads the stored form of Append.
func Decode(b []byte) (c Counts, err error) {
	if len(b) == 0 || b[0] != storedFormat {
		return Counts{}, errCoded
	}
	r := &reader{b: b[1:]}
	for _, n := range c.counterFields() {
		*n = r.readNumber()
	}
	c.Took, c.Wait, c.LastFailedAt = r.readSketch(), r.readSketch(), r.readNumber()
	if r.failed {
		return Counts{}, errCoded
	}
	c.LastFailed = string(r.b)
	return c, nil
}

// Tally adds a result of a node. task and at are recorded for a failure.
func (c *Counts) Tally(t *flow.Tally, task string, at int64) {
	switch t.What {
	case flow.TallyRetried:
		c.Retried += int64(t.N)
		return
	case flow.TallyClaimed:
		c.Wait.Observe(t.MS)
		return
	case flow.TallyCompleted:
		c.Completed++
	case flow.TallySkipped:
		c.Skipped++
	case flow.TallyFailed:
		c.Failed++
		c.LastFailed, c.LastFailedAt = task, at
	}
	c.Units += int64(t.N)
	if t.MS >= 0 {
		c.Took.Observe(t.MS)
	}
}

// End counts the end of a task. ms is the duration of the task.
func (c *Counts) End(status flow.TaskStatus, task string, at, ms int64) {
	switch status {
	case flow.TaskCompleted:
		c.Completed++
	case flow.TaskCanceled:
		c.Canceled++
	default:
		c.Failed++
		c.LastFailed, c.LastFailedAt = task, at
	}
	c.Took.Observe(ms)
}

// closingScope is the scope in which the compensations and the finally node of a flow are counted.
// A retried task may close several times; all its closing scopes count as this one.
const closingScope = "~"

// PlanScope returns the scope of the plan for a task's scope, which is the path without visits.
func PlanScope(scope string) string {
	at, inside := flow.ParentOf(scope)
	switch {
	case inside:
		return flow.ScopeKey(PlanScope(at.Scope), at.Node)
	case strings.HasPrefix(scope, closingScope):
		return closingScope
	}
	return scope
}
