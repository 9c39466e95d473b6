package wire

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimesHaveMilliseconds(t *testing.T) {
	for ms, want := range map[int64]string{
		1_700_000_000_000: `"2023-11-14T22:13:20.000Z"`,
		1_700_000_000_120: `"2023-11-14T22:13:20.120Z"`,
	} {
		b, err := json.Marshal(Millis(ms))
		require.NoError(t, err)
		require.Equal(t, want, string(b))
		var back Time
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, ms, back.UnixMilli())
	}
	elsewhere := Time{time.UnixMilli(1_700_000_000_120).In(time.FixedZone("", 3600))}
	b, err := elsewhere.MarshalText()
	require.NoError(t, err)
	require.Equal(t, "2023-11-14T22:13:20.120Z", string(b))
	b, err = json.Marshal(struct {
		At Time `json:"at,omitzero"`
	}{Millis(0)})
	require.NoError(t, err)
	require.Equal(t, "{}", string(b), "no time is absent")
}
