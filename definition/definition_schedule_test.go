package definition_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
)

func TestDatesOfAScheduleAreMidnightInItsZone(t *testing.T) {
	for _, tt := range []struct{ schedule, start, end string }{
		{"{timezone: Europe/Berlin, start: 2026-01-01, end: 2026-07-01}", "2025-12-31T23:00:00Z", "2026-06-30T22:00:00Z"},
		{"{timezone: America/New_York, start: '2026-01-01', end: \"2026-07-01\"}", "2026-01-01T05:00:00Z", "2026-07-01T04:00:00Z"},
		{"{start: 2026-01-01, end: 2026-07-01}", "2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z"},
		{"{timezone: Europe/Berlin, start: 2026-01-01T00:00:00Z, end: '2026-07-01T00:00:00-04:00'}",
			"2026-01-01T00:00:00Z", "2026-07-01T04:00:00Z"},
		// Clocks skip midnight of this day in Beirut.
		{"{timezone: Asia/Beirut, start: 2025-03-30, end: 2025-03-31}", "2025-03-29T22:00:00Z", "2025-03-30T21:00:00Z"},
	} {
		for _, local := range []string{"UTC", "Asia/Tokyo"} { // the zone of the machine has no effect
			setLocal(t, local)
			d, err := definition.Parse([]byte("start: a\nnodes: {a: {func: f}}\nschedule: " + tt.schedule))
			require.NoError(t, err)
			spec, err := d.Schedule.Spec()
			require.NoError(t, err)
			require.Equal(t, tt.start, time.UnixMilli(spec.StartAt).UTC().Format(time.RFC3339), tt.schedule)
			require.Equal(t, tt.end, time.UnixMilli(spec.EndAt).UTC().Format(time.RFC3339), tt.schedule)
		}
	}
}

// setLocal sets the zone of the machine until the test ends.
func setLocal(t *testing.T, name string) {
	t.Helper()
	zone, err := time.LoadLocation(name)
	require.NoError(t, err)
	before := time.Local
	time.Local = zone
	t.Cleanup(func() { time.Local = before })
}
