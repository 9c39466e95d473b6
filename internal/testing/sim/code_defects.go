package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/flow"
)

// damageHistory inserts a defect into the recorded steps that a carrier gets.
func (c *codeCarrier) damageHistory(call *flow.FunctionCall) *flow.FunctionCall {
	damaged := *call
	switch n := len(call.Steps); {
	case c.options.Shortened && n > 0 && c.w.drawChance(300):
		damaged.Steps = call.Steps[:n-1]
	case c.options.Shuffled:
		damaged.Steps = slices.Clone(call.Steps)
		slices.SortStableFunc(damaged.Steps, func(a, b flow.CodeStep) int { return strings.Compare(b.Name, a.Name) })
	}
	return &damaged
}

// damagedHost inserts a defect into the engine's side of a function.
func (c *codeCarrier) damagedHost(engine carriers.FunctionHost, job *flow.Job) carriers.FunctionHost {
	record := engine.Record
	engine.Record = func(steps []flow.CodeStep, waits []flow.CodeWait) error {
		t := c.check.tasks[job.Task]
		switch {
		case c.options.Hasty && c.w.drawChance(300):
			c.w.startCoroutine(c.h, "late", func() { _ = record(steps, waits) })
			return nil
		case c.options.Ageless && t != nil && !c.ledger.isCurrent(job) && deliveryOf(t.state) >= 0:
			results := flow.RecordSteps{Address: job.Address, Given: deliveryOf(t.state), Steps: steps}
			return doCommand(context.Background(), c.anyMember(), job.Task, results, "")
		}
		return record(steps, waits)
	}
	return engine
}
