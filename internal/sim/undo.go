package sim

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
)

// owed is a step that completed and names what undoes it.
type owed struct {
	Node  string
	Visit int
	by    string
}

// compensations notes what is to be undone, and checks that it is: the last one first, each once, and told
// what it undoes.
func (t *shadow) compensations(e *flow.Event) error {
	c := t.state.Closing
	if c == nil || e.Scope != c.Scope.Path {
		sc := t.state.Scope(e.Scope)
		if n := sc.Plan.Nodes[e.Node]; e.Type == flow.StepEnded && e.Status == string(flow.StepCompleted) && n.Undo != "" {
			t.owed = append(t.owed, owed{e.Node, e.Visit, n.Undo})
		}
		return nil
	}
	if e.Type != flow.StepEntered || len(t.owed) == 0 && e.Node == t.state.Plan.Finally {
		return nil
	}
	var told owed
	if err := json.Unmarshal(e.Input, &told); err != nil || len(t.owed) == 0 {
		return fmt.Errorf("%s runs with %s, and %d steps are to be undone", e.Address(), e.Input, len(t.owed))
	}
	last := t.owed[len(t.owed)-1]
	t.owed = t.owed[:len(t.owed)-1]
	if told.by = e.Node; told != last {
		return fmt.Errorf("%+v is undone, and %+v should be", told, last)
	}
	return nil
}

// undone checks that a task which did not complete has undone all it did.
func (c *checker) undone(t *shadow) {
	if t.state.Status != flow.TaskCompleted && len(t.owed) > 0 {
		c.w.fail("task %s is %s and has not undone %+v", t.state.Task, t.state.Status, t.owed)
	}
}
