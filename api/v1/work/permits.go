package work

import (
	"context"
	"fmt"
	"slices"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// AddToWaits adds to waits for a permit or a worker how many others wait before them, which is only
// known from the store.
func (q *Positions) AddToWaits(ctx context.Context, task string, waits []wire.WaitReason) error {
	all := make([]*wire.WaitReason, len(waits))
	for i := range waits {
		all[i] = &waits[i]
	}
	return q.addWaitPositions(ctx, task, all)
}

// AddToSteps is like AddToWaits, for the waits of steps.
func (q *Positions) AddToSteps(ctx context.Context, task string, steps []wire.Step) error {
	var all []*wire.WaitReason
	for i := range steps {
		if steps[i].Wait != nil {
			all = append(all, steps[i].Wait)
		}
	}
	return q.addWaitPositions(ctx, task, all)
}

func (q *Positions) addWaitPositions(ctx context.Context, task string, waits []*wire.WaitReason) error {
	if err := q.addQueuePositions(ctx, task, waits); err != nil {
		return err
	}
	if !slices.ContainsFunc(waits, func(w *wire.WaitReason) bool { return w.Kind == flow.WaitsForPermit }) {
		return nil
	}
	rows, err := q.Reader.Permits(ctx, task)
	if err != nil {
		return err
	}
	for _, w := range waits {
		a := flow.Address{Scope: w.Scope, Node: w.Node, Visit: w.Visit, Unit: w.Unit, Attempt: w.Attempt}
		for _, row := range rows {
			if row.Holder == flow.JobID(task, a) && row.Key == w.Key {
				before := row.Before
				w.Ahead = &before
				w.Text += fmt.Sprintf(" (%d%s before it)", before, orMore(before))
			}
		}
	}
	return nil
}

// orMore returns the suffix for a count that has reached its limit.
func orMore(n int) string {
	if n < persistence.MostBefore {
		return ""
	}
	return " or more"
}
