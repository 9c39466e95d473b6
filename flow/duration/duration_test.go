package duration

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationsOfAllUnits(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "250ms": 250 * time.Millisecond, "90s": 90 * time.Second,
		"1.5s": 1500 * time.Millisecond, ".5h": 30 * time.Minute, "1h30m": 90 * time.Minute,
		"1d12h": 36 * time.Hour, "2w": 14 * day, "1w1d1s": 8*day + time.Second,
		"0.5d": 12 * time.Hour, "2000us": 2 * time.Millisecond, "1000µs": time.Millisecond,
		"5000000ns": 5 * time.Millisecond, "36500d": Longest, "1d1w": 8 * day,
	} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestInvalidDurationsAreRejected(t *testing.T) {
	for text, want := range map[string]string{
		"": "is no duration: write it like 250ms, 90s, 1h30m, 1d12h or 2w", "-": "is no duration",
		"d": "is no duration", "30": "is no duration", "1d-3h": "is no duration",
		"NaNd": "is no duration", "30 d": "is no duration", "1.2.3s": "is no duration",
		".s": "is no duration", "+3s": "is no duration", "1e3s": "is no duration", " 3s": "is no duration",
		strings.Repeat("9", 31) + "s": "is no duration",
		"-3s":                         `"-3s" is negative: write a duration from 0 on`, "-.5h": "is negative",
		"500us": `"500us" is finer than a millisecond`, "1ns": "is finer than a millisecond",
		"1.0005s": "is finer than a millisecond", "1h1ns": "is finer than a millisecond",
		"36501d": `"36501d" is longer than 100 years`, "99999999999999999999w": "is longer than 100 years",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}
