package flow

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestJobIDIsReadBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		scope := ""
		for range rapid.IntRange(0, 3).Draw(rt, "depth") {
			scope = childScope(scope, key(rt), rapid.IntRange(1, 9).Draw(rt, "visit"))
		}
		want := Address{Scope: scope, Node: key(rt), Visit: rapid.IntRange(1, 9).Draw(rt, "visit"),
			Unit: rapid.IntRange(0, 100_000).Draw(rt, "unit"), Attempt: rapid.IntRange(1, 9).Draw(rt, "attempt")}
		id := JobID("task-1", want)
		require.Regexp(rt, `^[A-Za-z0-9._-]+$`, id)
		task, got, err := ParseJobID(id)
		require.NoError(rt, err)
		require.Equal(rt, "task-1", task)
		require.Equal(rt, want, got)
		parent, ok := ParentOf(scope)
		require.Equal(rt, scope != "", ok)
		require.True(rt, !ok || ChildScope(parent) == scope)
	})
}

// key of a node may hold anything but control characters.
func key(rt *rapid.T) string { return rapid.StringMatching(`[a-zé%/#. 0-9]{1,6}`).Draw(rt, "key") }

func TestAStepIsNamedByItsPath(t *testing.T) {
	sub := ChildScope(Address{Node: "a/b", Visit: 2})
	require.Equal(t, "x", Address{Node: "x", Visit: 1}.Step())
	require.Equal(t, "a/b/x", Address{Scope: sub, Node: "x"}.Step())
	require.Equal(t, "a/b/x/y", Address{Scope: childScope(sub, "x", 1), Node: "y"}.Step())
}

func TestOtherJobIDsAreUnknown(t *testing.T) {
	good := JobID("t", Address{Node: "a", Visit: 1, Attempt: 1})
	require.Equal(t, "t.1.0.1.CmE", good)
	for _, id := range []string{"", "t", "t.1.0.1", "t.1.0.1.!", "t.1.0.1.YQ", "t.-1.0.1.CmE", "t.+1.0.1.CmE", "t.01.0.1.CmE", ".1.0.1.CmE", good + "=", good + ".x"} {
		_, _, err := ParseJobID(id)
		require.Equal(t, NotFound, ErrorKindOf(err), id)
	}
}
