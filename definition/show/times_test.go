package show

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestLongDurationsAreShownInFull(t *testing.T) {
	for ms, want := range map[int64]string{0: "", 1_500: "1.5s", 60_000: "1m", 3_600_000: "1h", flow.MaxDelay: "27777777h"} {
		require.Equal(t, want, durationText(ms))
	}
}

// FuzzTimes puts times into a flow and runs it: no alarm may be in the past, and no wait may be
// negative.
