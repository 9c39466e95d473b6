package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSinceIsATimeOrHowLongAgo(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"90m":                  now.Add(-90 * time.Minute),
		"2026-01-31":           time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local),
		"2026-01-31 10:00:00":  time.Date(2026, 1, 31, 10, 0, 0, 0, time.Local),
		"2026-01-31T10:00:00Z": time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC),
		"":                     {},
	} {
		got, err := ParseSince("--since", text, now)
		require.NoError(t, err)
		require.True(t, want.Equal(got), text)
	}
}
