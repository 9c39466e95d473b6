package bounded

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAFloodIsLoggedInParts(t *testing.T) {
	var l Lines
	now := time.Unix(1_000_000, 0)
	told := 0
	for range 1000 {
		if leftOut, ok := l.Admit(now); ok {
			require.Zero(t, leftOut)
			told++
		}
	}
	require.Equal(t, AtOnce, told)
	_, ok := l.Admit(now.Add(Every - 1))
	require.False(t, ok)
	leftOut, ok := l.Admit(now.Add(Every))
	require.True(t, ok)
	require.Equal(t, 1000-AtOnce+1, leftOut)
	_, ok = l.Admit(now) // a clock that was set back
	require.False(t, ok)
	leftOut, ok = l.Admit(now.Add(time.Hour))
	require.True(t, ok)
	require.Equal(t, 1, leftOut)
}

func TestOnceReportsEachMessageOnce(t *testing.T) {
	var o Once
	require.True(t, o.First("a"))
	require.False(t, o.First("a"))
	for i := range mostSaid {
		o.First(fmt.Sprint(i))
	}
	require.True(t, o.First("a"), "memory has an end")
}
