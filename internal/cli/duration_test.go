package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationsMayHaveDaysAndWeeks(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "30d": 30 * day, "2w": 14 * day, "1d12h": 36 * time.Hour,
		"1w1d1s": 8*day + time.Second, "0.5d": 12 * time.Hour, "-1d": -day, "-3s": -3 * time.Second, "0": 0, "0d": 0, "36500d": 36500 * day} {
		got, err := parseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-", "d", "30", "1d1w", "1d-3h", "--3s", "NaNd", "1000000d", "wednesday", "30 d"} {
		_, err := parseDuration(text)
		require.ErrorContains(t, err, "is no duration: write it like 90s, 1h30m or 30d", text)
	}
	got := call(t, "serve", "--retention", "soon")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "30d")
}
