package v1

import (
	"context"
	"fmt"
	"slices"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// inLine adds to waits for a permit or a worker how many others wait before them. Only the store
// knows.
func (q *queuePositions) inLine(ctx context.Context, task string, waits []wire.Wait) error {
	all := make([]*wire.Wait, len(waits))
	for i := range waits {
		all[i] = &waits[i]
	}
	return q.addWaitPositions(ctx, task, all)
}

// stepsInLine is inLine for steps.
func (q *queuePositions) stepsInLine(ctx context.Context, task string, steps []wire.Step) error {
	var all []*wire.Wait
	for i := range steps {
		if steps[i].Wait != nil {
			all = append(all, steps[i].Wait)
		}
	}
	return q.addWaitPositions(ctx, task, all)
}

func (q *queuePositions) addWaitPositions(ctx context.Context, task string, waits []*wire.Wait) error {
	if err := q.addQueuePositions(ctx, task, waits); err != nil {
		return err
	}
	if !slices.ContainsFunc(waits, func(w *wire.Wait) bool { return w.For == flow.WaitsForPermit }) {
		return nil
	}
	rows, err := q.reader.Permits(ctx, task)
	if err != nil {
		return err
	}
	for _, w := range waits {
		a := flow.Address{Scope: w.Scope, Node: w.Node, Visit: w.Visit, Unit: w.Unit, Attempt: w.Attempt}
		for _, row := range rows {
			if row.Holder == flow.JobID(task, a) && row.Key == w.Key {
				before := row.Before
				w.Before = &before
				w.Text += fmt.Sprintf(" (%d%s before it)", before, orMore(before))
			}
		}
	}
	return nil
}

// orMore returns a suffix that marks a count at its limit.
func orMore(n int) string {
	if n < persistence.MostBefore {
		return ""
	}
	return " or more"
}
