package troupe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestManyTasksAreReachedOnEveryMember(t *testing.T) {
	store := pgtest.DSN(t)
	a, b := join(t, Config{Store: store, Name: "a"}), join(t, Config{Store: store, Name: "b"})
	shared(t, a, b)
	require.NoError(t, a.Publish(t.Context(), "f", waitsFor("a")))
	for range 40 {
		_, err := a.Start(t.Context(), "f", nil)
		require.NoError(t, err)
	}
	ctx := WithRequest(t.Context(), "night")
	everything := Bulk{Action: "pause", Filter: &TaskFilter{Flow: []string{"f"}}, Limit: 30}
	done, err := b.Bulk(ctx, everything)
	require.NoError(t, err)
	require.Equal(t, []int{30, 30, 0}, []int{done.Tasks, done.Changed, done.Failed})
	everything.Cursor = done.Next
	done, err = a.Bulk(ctx, everything)
	require.NoError(t, err)
	require.Equal(t, []any{10, 10, ""}, []any{done.Tasks, done.Changed, done.Next})
	paused, err := a.CountTasks(ctx, TaskQuery{States: []string{"paused"}}, "")
	require.NoError(t, err)
	require.Equal(t, 40, paused.Count)
	_, err = a.Bulk(ctx, Bulk{Action: "pause"})
	require.ErrorIs(t, err, ErrInvalid)
}
