package console

import (
	"fmt"

	"github.com/troupe-engine/troupe/api/wire"
)

// JoinNode returns the name of a node, preceded by its scope.
func JoinNode(scope, node string) string {
	if scope == "" {
		return node
	}
	return scope + "/" + node
}

// AddPrefix returns s with a prefix; "" if s is empty.
func AddPrefix(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// FormatState returns a task's state with details, for example that a running task is paused.
func FormatState(t *wire.TaskSummary) string {
	state := t.State + FormatFollowed(t.IgnoredErrors)
	if t.Paused {
		return state + " (paused)"
	}
	return state
}

// FormatFollowed returns a note about failed steps after which a task continued.
func FormatFollowed(errors int) string {
	if errors == 0 {
		return ""
	}
	return ", " + FormatCount(errors, "error") + " handled"
}

// FormatPlace formats a place as node, visit, unit and attempt, without redundant parts.
func FormatPlace(p *wire.Place) string {
	if p.Node == "" {
		return p.Scope
	}
	place := fmt.Sprintf("%s#%d", JoinNode(p.Scope, p.Node), p.Visit)
	if p.Attempt > 0 {
		place += fmt.Sprintf(" unit %d attempt %d", p.Unit, p.Attempt)
	}
	return place
}
