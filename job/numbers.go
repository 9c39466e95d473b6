package job

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"unicode/utf8"
)

// Number is what a job has told of one name with the same labels, such as how many rows it has
// read.
type Number struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Count  int64             `json:"count"` // how many values were told
	Sum    float64           `json:"sum"`   // of them
	Last   float64           `json:"last"`  // the newest
}

// Numbers are those of a job, within bounds: what would be more is left out. The zero value has
// none; it is not safe for concurrent use.
type Numbers struct {
	list    []Number
	indexes map[string]int // places in list, by name and labels
	bytes   int            // of those
}

// Bounds of a job's numbers.
const (
	maxNumbers     = 100      // of different names or labels
	maxNumberBytes = 32 << 10 // of all names and labels
)

// Add counts a value. One that is no number, or would make the sum none, is left out, and so is one
// without a name.
func (n *Numbers) Add(name string, value float64, labels map[string]string) {
	n.Merge(Number{Name: name, Labels: labels, Count: 1, Sum: value, Last: value})
}

// Merge counts values that were added up before.
func (n *Numbers) Merge(more Number) {
	if more.Name == "" || more.Count <= 0 || !isFinite(more.Sum) || !isFinite(more.Last) || !utf8.ValidString(more.Name) {
		return
	}
	at, ok := n.indexOf(more.Name, more.Labels)
	if !ok {
		return
	}
	if of := &n.list[at]; isFinite(of.Sum + more.Sum) {
		of.Count, of.Sum, of.Last = of.Count+more.Count, of.Sum+more.Sum, more.Last
	}
}

func isFinite(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }

// indexOf is where the number of a name and labels is; there is none if that would be too much.
func (n *Numbers) indexOf(name string, labels map[string]string) (at int, ok bool) {
	key, _ := json.Marshal([]any{name, labels}) // texts always have a JSON
	if at, ok = n.indexes[string(key)]; ok {
		return at, true
	}
	if len(n.list) == maxNumbers || n.bytes+len(key) > maxNumberBytes {
		return 0, false
	}
	if n.indexes == nil {
		n.indexes = map[string]int{}
	}
	n.indexes[string(key)] = len(n.list)
	n.bytes += len(key)
	n.list = append(n.list, Number{Name: name, Labels: labels})
	return len(n.list) - 1, true
}

// List are the numbers in the order in which their names were told first.
func (n *Numbers) List() []Number { return n.list }

// NumbersJSON is a list of numbers as it is kept with an attempt; nil = there are none.
func NumbersJSON(list []Number) json.RawMessage {
	if len(list) == 0 {
		return nil
	}
	text, _ := json.Marshal(list) // texts and finite numbers always have a JSON
	return text
}

// lockedNumbers are the numbers of a handler's job; a handler may tell some of several goroutines.
type lockedNumbers struct {
	mu   sync.Mutex
	list Numbers
}

// Count tells a number of the job of a handler's context, such as how many rows it has read. All of
// a name and the same labels are added up; they are kept with the attempt (`metrics`), whatever
// becomes of it, and the members count them by name for whoever scrapes them. Of a job up to 100
// different ones are kept.
func Count(ctx context.Context, name string, value float64, labels map[string]string) {
	Tell(ctx, Number{Name: name, Labels: labels, Count: 1, Sum: value, Last: value})
}

// Tell is Count for values that were added up before.
func Tell(ctx context.Context, list ...Number) {
	c, ok := ctx.Value(contextKey{}).(*handlerContext)
	if !ok {
		return
	}
	c.numbers.mu.Lock()
	defer c.numbers.mu.Unlock()
	for _, n := range list {
		c.numbers.list.Merge(n)
	}
}

// Told are the numbers that were told of the job of a handler's context, as JSON; nil = none.
func Told(ctx context.Context) json.RawMessage {
	c, ok := ctx.Value(contextKey{}).(*handlerContext)
	if !ok {
		return nil
	}
	c.numbers.mu.Lock()
	defer c.numbers.mu.Unlock()
	return NumbersJSON(c.numbers.list.List())
}
