package show

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestALongTimeIsShownInFull(t *testing.T) {
	for ms, want := range map[int64]string{0: "", 1_500: "1.5s", 60_000: "1m", 3_600_000: "1h", flow.MaxDelay: "27777777h"} {
		require.Equal(t, want, durationText(ms))
	}
}

// FuzzTimes writes times into a flow and plays it: whatever they are, no alarm is set into the
// past, and nobody is asked to wait for less than nothing.
