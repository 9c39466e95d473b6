package persistence_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATaskIsReadAsItWasFromTheCheckpointBefore(t *testing.T) {
	s, reader := newLongTask(3000)
	for _, row := range []int64{1, 99, 100, 101, 1700, 3000} {
		s.read = 0
		v, err := reader.ViewAt(t.Context(), "t", row)
		require.NoError(t, err)
		require.Equal(t, row, v.Seq)
		require.EqualValues(t, row, v.State.Root.Visits["a"])
		require.LessOrEqual(t, s.read, 200, "row %d", row)
	}
	v, err := reader.ViewAt(t.Context(), "t", 9999)
	require.NoError(t, err)
	require.EqualValues(t, 3000, v.Seq, "there are no more")
	s.blind = true
	v, err = reader.ViewAt(t.Context(), "t", 250)
	require.NoError(t, err)
	require.EqualValues(t, 250, v.State.Root.Visits["a"], "checkpoints that cannot be read are done without")
}
