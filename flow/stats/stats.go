// Package stats tells how tasks go: how many begin and end, how long they take, and what their
// nodes do.
//
// Members add up what they have stored (Counts), by what it is of (Key). Counts can be added in
// whatever order, so those of several members, and of a time in pieces, come to the same as if one
// had counted all of it.
package stats

import (
	"encoding/binary"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Key says what was counted. Without a Node it is the tasks themselves; without a Flow it is those
// of all flows.
type Key struct {
	Flow    string // id
	Version string // id; "" of all flows
	Scope   string // of the plan: without visits
	Node    string
}

// Other is the node of those that are too many to be told apart.
const Other = "(other)"

// Counts are of a node, or of tasks.
type Counts struct {
	Began     int64 // tasks only: a node counts once it ended
	Completed int64
	Failed    int64
	Skipped   int64 // nodes only
	Canceled  int64 // tasks only
	Retried   int64 // attempts after the first one, and tries of the whole step
	Units     int64 // of what ended

	Took Sketch // from beginning to end, of what did begin
	Wait Sketch // of attempts until somebody claimed them, where they have to be

	LastFailed   string // task that failed last, or in which the node did
	LastFailedAt int64
}

// Ended is how many ended in whatever way.
func (c *Counts) Ended() int64 { return c.Completed + c.Failed + c.Skipped + c.Canceled }

// Empty reports whether nothing was counted.
func (c *Counts) Empty() bool { return c.Began+c.Ended()+c.Retried+c.Wait.N() == 0 }

// Add adds others.
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

// storedFormat is the first byte of what is stored.
const storedFormat = 1

// Append adds their stored form, which Decode reads.
func (c *Counts) Append(b []byte) []byte {
	b = append(b, storedFormat)
	for _, n := range c.counterFields() {
		b = binary.AppendUvarint(b, uint64(*n))
	}
	b = c.Wait.appendTo(c.Took.appendTo(b))
	return append(binary.AppendUvarint(b, uint64(c.LastFailedAt)), c.LastFailed...)
}

// Decode reads what Append has written.
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

// Tally adds what a decision of a task tells of a node.
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

// End adds that a task has ended.
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

// closingScope is where a task undoes and cleans up, whichever time.
const closingScope = "~"

// PlanScope is a task's scope as the plan has it: without visits.
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
