package show_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/flow"
)

func TestTasksAreComparedNodeByNode(t *testing.T) {
	at := func(node string, visit int) flow.Visit {
		return flow.Visit{Address: flow.Address{Node: node, Visit: visit}, Status: flow.StepCompleted, Attempts: 1, Units: 1}
	}
	failed := at("charge", 1)
	failed.Status, failed.Error, failed.Attempts = flow.StepFailed, "declined", 3
	one := []flow.Visit{at("reserve", 1), failed, at("refund", 1)}
	other := []flow.Visit{at("look", 1), at("reserve", 1), at("charge", 1), at("ship", 1), at("ship", 2)}
	var told [][]any
	for _, p := range show.Compare(one, other) {
		name := func(v *flow.Visit) any {
			if v == nil {
				return nil
			}
			return v.Step()
		}
		told = append(told, []any{name(p.One), name(p.Other), p.Same(), p.Differs})
	}
	none := []show.Difference(nil)
	require.Equal(t, [][]any{
		{nil, "look", false, none},
		{"reserve", "reserve", true, none},
		{"charge", "charge", false, []show.Difference{"state", "error", "attempts"}},
		{nil, "ship", false, none},
		{nil, "ship", false, none},
		{"refund", nil, false, none},
	}, told)
	require.Empty(t, show.Compare(nil, nil))
}
