package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// walk passes a table's journal to a walker, from before a given row on. Checkpoints follow random
// rows. The walk begins at the last checkpoint before that row, and skips to later ones while the
// walker is idle.
func (tb *table) walk(d flowtest.Dice, from int64, w flow.Walker) {
	states := tb.checkpoints(d)
	at := int64(0)
	w.From(flow.NewState(tb.state.Task, tb.state.Plan))
	for seq := range states {
		if seq < from && seq > at {
			at = seq
		}
	}
	if at > 0 {
		w.From(tb.twin(states[at]))
	}
	for !w.Done() && int(at) < len(tb.rows) {
		if next := tb.furthest(states, at, w); next > at {
			at = next
			w.From(tb.twin(states[at]))
			continue
		}
		at++
		events, err := flow.DecodeEvents(tb.rows[at-1])
		require.NoError(tb.t, err)
		for i := range events {
			w.Apply(&events[i], flow.Place{Seq: at, Index: i})
		}
	}
}

// checkpoints returns the states after some rows.
func (tb *table) checkpoints(d flowtest.Dice) map[int64][]byte {
	s, states := flow.NewState(tb.state.Task, tb.state.Plan), map[int64][]byte{}
	for i, row := range tb.rows {
		require.NoError(tb.t, flow.Fold(s, row))
		if flowtest.Chance(d, 40) {
			states[int64(i+1)] = flow.EncodeSnapshot(s).Bytes()
		}
	}
	return states
}

// furthest returns the last checkpoint of a sequence until which the walker is idle.
func (tb *table) furthest(states map[int64][]byte, at int64, w flow.Walker) int64 {
	if w.Busy() {
		return at
	}
	found := at
	for seq := at + 1; int(seq) <= len(tb.rows); seq++ {
		if states[seq] == nil {
			continue
		}
		if !w.Idle(tb.twin(states[seq])) {
			break
		}
		found = seq
	}
	return found
}

// TestPagesMatchTheWholeHistory compares pages of a task's history, cut at any place and read from
// any checkpoint, with the whole history.
func TestPagesMatchTheWholeHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := flowtest.Rapid{T: rt}
		tb := newTable(rt, flowtest.Plan(rt, flowtest.RandomDefinition(d)))
		tb.env.Limits = flow.Limits{Steps: 40, Depth: 2, Units: 6}
		_, err := tb.do(flow.Start{Params: paramsFor(tb.state.Plan)})
		require.NoError(rt, err)
		for i := range flowtest.Between(d, "commands", 0, 20) {
			tb.happen(d, i)
		}
		tb.sameRuns(d)
		for _, scope := range tb.scopes() {
			tb.sameSteps(d, scope)
		}
	})
}

func (tb *table) sameRuns(d flowtest.Dice) {
	whole := tb.runs()
	var parts []flow.NodeRun
	p := &flow.RunPage{More: true}
	for p.More {
		after := p.Next
		p = flow.NewRunPage(after, flowtest.Between(d, "most", 1, 4), flowtest.Between(d, "bytes", 0, 400))
		tb.walk(d, after.Seq, p)
		require.True(tb.t, len(p.Runs) > 0 || !p.More)
		parts = append(parts, p.Runs...)
	}
	require.Equal(tb.t, len(whole), len(parts))
	for i := range whole {
		require.Equal(tb.t, runText(&whole[i]), runText(&parts[i]))
	}
	tb.sameRun(d, whole)
}

// sameRun finds each run by its address. A step and its first attempt may have the same address.
func (tb *table) sameRun(d flowtest.Dice, whole []flow.NodeRun) {
	seen := map[flow.Address]bool{}
	for i := range whole {
		a := whole[i].Address
		if seen[a] || whole[i].Kind == flow.RunCancel {
			continue
		}
		seen[a] = true
		one := flow.NewRunOf(a)
		tb.walk(d, 0, one)
		require.Len(tb.t, one.Runs, 1)
		require.Equal(tb.t, runText(&whole[i]), runText(&one.Runs[0]))
	}
}

// scopes returns the scopes in which a step has begun.
func (tb *table) scopes() []string {
	list, seen := []string{}, map[string]bool{}
	for i := range tb.events {
		if e := &tb.events[i]; e.Type == flow.StepEntered && !seen[e.Scope] {
			seen[e.Scope] = true
			list = append(list, e.Scope)
		}
	}
	return list
}

func (tb *table) sameSteps(d flowtest.Dice, scope string) {
	whole := tb.steps(flow.StepQuery{Scope: scope, Most: 1_000, Bytes: 1 << 20}, nil)
	var parts []flow.StepView
	p := &flow.StepPage{More: true}
	for p.More {
		p = tb.stepPage(flow.StepQuery{Scope: scope, After: p.Next,
			Most: flowtest.Between(d, "most", 1, 3), Bytes: flowtest.Between(d, "bytes", 0, 200)}, d)
		parts = append(parts, p.Steps...)
	}
	require.Equal(tb.t, whole, parts)
	tb.sameDigest(d, scope, whole)
	for i := range whole {
		tb.sameUnits(d, &whole[i])
	}
}

func (tb *table) sameUnits(d flowtest.Dice, v *flow.StepView) {
	if v.Visit == 0 || v.StartedAt == 0 {
		return
	}
	l := flow.NewUnitList(v.Address)
	tb.walk(d, 0, l)
	if l.Step != nil { // a node of a dag may end without having begun
		require.Equal(tb.t, v.Units.Total, l.Len())
	}
}

// steps returns all steps that match a query.
func (tb *table) steps(q flow.StepQuery, d flowtest.Dice) []flow.StepView {
	return tb.stepPage(q, d).Steps
}

// stepPage returns the page of a query. Without dice there are no checkpoints.
func (tb *table) stepPage(q flow.StepQuery, d flowtest.Dice) *flow.StepPage {
	if d == nil {
		d = never{}
	}
	if tb.state.Plan.ScopeOf(q.Scope).Dag == nil {
		p := flow.NewStepPage(q, false)
		tb.walk(d, q.After.Seq, p)
		p.Finish()
		return p
	}
	s, sc := tb.state, tb.state.Scope(q.Scope)
	if sc == nil {
		w := flow.NewScopeWalk(q.Scope)
		tb.walk(d, 0, w)
		s, sc = w.State, w.Scope
	}
	p := flow.NodePage(s, sc, q)
	if p.More || q.Scope != "" {
		return p
	}
	q.Most, q.Bytes = max(q.Most-len(p.Steps), 1), max(q.Bytes-p.Size(), 0)
	closing := flow.NewStepPage(q, true)
	tb.walk(d, q.After.Seq, closing)
	closing.Finish()
	closing.Steps = append(p.Steps, closing.Steps...)
	return closing
}

// never is a Dice that always chooses the last option.
type never struct{}

func (never) Pick(_ string, n int) int { return n - 1 }
