package stream

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPositionIsReadAsItIsWritten(t *testing.T) {
	for _, text := range []string{"12.0", "12.7", "12", "0"} {
		p, ok := ParsePosition(text)
		require.True(t, ok, text)
		require.Equal(t, text, p.String())
	}
	for _, text := range []string{"-1", "1.-1", "1.", "x", "1.2.3", ".", " 1"} {
		_, ok := ParsePosition(text)
		require.False(t, ok, text)
	}
	beginning, ok := ParsePosition("")
	require.True(t, ok)
	require.False(t, beginning.Covers(1, 0))
}

func TestAPositionCoversWhatIsUpToIt(t *testing.T) {
	event, row := Position{12, 3}, After(12)
	require.Equal(t, []int64{11, 12}, []int64{event.Since(), row.Since()})
	for _, tt := range []struct {
		seq        int64
		index      int
		event, row bool
	}{{11, 99, true, true}, {12, 3, true, true}, {12, 4, false, true}, {13, 0, false, false}} {
		require.Equal(t, tt.event, event.Covers(tt.seq, tt.index), "%v", tt)
		require.Equal(t, tt.row, row.Covers(tt.seq, tt.index), "%v", tt)
	}
}
