package flow

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestJobIDRoundTrips(t *testing.T) {
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

// key draws the key of a node. A key may contain anything but control characters.
func key(rt *rapid.T) string { return rapid.StringMatching(`[a-zé%/#. 0-9]{1,6}`).Draw(rt, "key") }

func TestAttemptsOfAUnitShareAUniqueKey(t *testing.T) {
	long := strings.Repeat("a long name ", 30)
	for _, a := range []Address{{Node: "n", Visit: 1, Attempt: 1},
		{Scope: "order#1", Node: "pay", Visit: 2, Unit: 3, Attempt: 1},
		{Node: long, Visit: 1, Attempt: 1}, {Scope: long + "#1", Node: "n", Visit: 1, Attempt: 1}} {
		again := a
		again.Attempt = 7
		key := UnitKey("task-1", a)
		require.Equal(t, key, UnitKey("task-1", again))
		require.Regexp(t, `^[A-Za-z0-9._-]{1,255}$`, key)
		id, same := jobIDAndUnitKey("task-1", a)
		require.Equal(t, []string{JobID("task-1", a), key}, []string{id, same})
		others := map[string]bool{key: true, UnitKey("task-2", a): true}
		for _, change := range []func(*Address){func(a *Address) { a.Scope += "x" },
			func(a *Address) { a.Node += "x" }, func(a *Address) { a.Visit++ },
			func(a *Address) { a.Unit++ }} {
			other := a
			change(&other)
			others[UnitKey("task-1", other)] = true
		}
		require.Len(t, others, 6)
	}
}

func TestAStepIsNamedByItsPath(t *testing.T) {
	sub := ChildScope(Address{Node: "a/b", Visit: 2})
	require.Equal(t, "x", Address{Node: "x", Visit: 1}.Step())
	require.Equal(t, "a/b/x", Address{Scope: sub, Node: "x"}.Step())
	require.Equal(t, "a/b/x/y", Address{Scope: childScope(sub, "x", 1), Node: "y"}.Step())
}

func TestOtherJobIDsAreUnknown(t *testing.T) {
	good := JobID("t", Address{Node: "a", Visit: 1, Attempt: 1})
	require.Equal(t, "t.1.0.1.CmE", good)
	for _, id := range []string{"", "t", "t.1.0.1", "t.1.0.1.!", "t.1.0.1.YQ", "t.-1.0.1.CmE",
		"t.+1.0.1.CmE", "t.01.0.1.CmE", ".1.0.1.CmE", good + "=", good + ".x"} {
		_, _, err := ParseJobID(id)
		require.Equal(t, NotFound, ErrorKindOf(err), id)
	}
}
