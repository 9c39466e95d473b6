package job

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"unicode/utf8"
)

// Number is the sum of the values that a job has reported under one name and one set of labels,
// such as the number of rows read.
type Number struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Count  int64             `json:"count"` // number of values
	Sum    float64           `json:"sum"`   // sum of the values
	Last   float64           `json:"last"`  // newest value
}

// Numbers holds the numbers of a job within limits; numbers beyond the limits are dropped. The zero
// value is empty. Numbers is not safe for concurrent use.
type Numbers struct {
	list    []Number
	indexes map[string]int // indexes in list, by name and labels
	bytes   int            // bytes of the keys of indexes
}

// Limits of a job's numbers.
const (
	maxNumbers     = 100      // number of different names or labels
	maxNumberBytes = 32 << 10 // bytes of all names and labels
)

// Add adds a value to the number with this name and these labels. It ignores a value without a
// name. It also ignores a value that is not finite, or with which the sum would not be finite.
func (n *Numbers) Add(name string, value float64, labels map[string]string) {
	n.Merge(Number{Name: name, Labels: labels, Count: 1, Sum: value, Last: value})
}

// Merge adds a number whose values were summed before.
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

// indexOf returns the index of the number with a name and labels, and adds the number if needed. It
// returns false if that would exceed the limits.
func (n *Numbers) indexOf(name string, labels map[string]string) (at int, ok bool) {
	key, _ := json.Marshal([]any{name, labels}) // texts can always be encoded
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

// List returns the numbers in the order in which their names were first added.
func (n *Numbers) List() []Number { return n.list }

// NumbersJSON returns numbers in the form that is stored with an attempt; nil for an empty list.
func NumbersJSON(list []Number) json.RawMessage {
	if len(list) == 0 {
		return nil
	}
	text, _ := json.Marshal(list) // texts and finite numbers can always be encoded
	return text
}

// lockedNumbers are the numbers of a handler's job. The mutex allows reports from several
// goroutines.
type lockedNumbers struct {
	mu   sync.Mutex
	list Numbers
}

// Count reports a number for the job of a handler's context, such as the number of rows read.
// Numbers with the same name and labels are summed. They are stored with the attempt (`metrics`),
// also if it fails, and members count them by name in their metrics. At most 100 different numbers
// per job are stored.
func Count(ctx context.Context, name string, value float64, labels map[string]string) {
	Tell(ctx, Number{Name: name, Labels: labels, Count: 1, Sum: value, Last: value})
}

// Tell reports numbers like Count, but their values were summed before.
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

// Told returns the numbers reported for the job of a handler's context, as JSON; nil if there are
// none.
func Told(ctx context.Context) json.RawMessage {
	c, ok := ctx.Value(contextKey{}).(*handlerContext)
	if !ok {
		return nil
	}
	c.numbers.mu.Lock()
	defer c.numbers.mu.Unlock()
	return NumbersJSON(c.numbers.list.List())
}
