package schedule

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func rule(t testing.TB, s Spec) *Rule {
	t.Helper()
	r, err := Read(s)
	require.NoError(t, err, "%+v", s)
	return r
}

func at(t testing.TB, text string) int64 {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return moment.UnixMilli()
}

// four are zones that change by an hour, north of the equator; by half an hour, south of it; and
// never.
var four = []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"}

// face is a time with the wall-clock time of a zone.
type face struct {
	at   int64
	wall time.Time
	seen bool // the wall clock has shown it before
}

// faces lists a year in steps of five minutes. It uses only the wall clocks of zones. absent holds
// the wall-clock times that are skipped, each with the moment of the change.
func faces(zone *time.Location, year int) (shown, absent []face) {
	seen := map[string]bool{}
	var before time.Time
	from, to := time.Date(year, 1, 1, 0, 0, 0, 0, zone), time.Date(year+1, 1, 1, 0, 0, 0, 0, zone)
	for at := from; at.Before(to); at = at.Add(5 * time.Minute) {
		text := at.In(zone).Format(time.DateTime)
		wall, _ := time.Parse(time.DateTime, text)
		for gone := before.Add(5 * time.Minute); !before.IsZero() && gone.Before(wall); gone = gone.Add(5 * time.Minute) {
			absent = append(absent, face{at: at.UnixMilli(), wall: gone})
		}
		shown = append(shown, face{at.UnixMilli(), wall, seen[text]})
		seen[text], before = true, wall
	}
	return shown, absent
}

func TestSlotsOfAYearMatchTheWallClock(t *testing.T) {
	type meaning struct {
		fits         func(time.Time) bool
		twice, shift bool // defaults of the expression
	}
	expressions := map[string]meaning{
		"30 2 * * *":     {func(w time.Time) bool { return w.Hour() == 2 && w.Minute() == 30 }, false, true},
		"0,30 1,2 * * *": {func(w time.Time) bool { return w.Minute()%30 == 0 && (w.Hour() == 1 || w.Hour() == 2) }, false, true},
		"45 1 * * *":     {func(w time.Time) bool { return w.Hour() == 1 && w.Minute() == 45 }, false, true},
		"0 */2 * * *":    {func(w time.Time) bool { return w.Minute() == 0 && w.Hour()%2 == 0 }, false, true},
		"*/15 * * * *":   {func(w time.Time) bool { return w.Minute()%15 == 0 }, true, false},
		"5 * * * *":      {func(w time.Time) bool { return w.Minute() == 5 }, true, false},
		"5 0-23 * * *":   {func(w time.Time) bool { return w.Minute() == 5 }, true, false},
		"*/5 2 * * *":    {func(w time.Time) bool { return w.Hour() == 2 }, true, true},
		"0-30/10 1-3 * * *": {func(w time.Time) bool {
			return w.Minute()%10 == 0 && w.Minute() <= 30 && w.Hour() >= 1 && w.Hour() <= 3
		}, true, true},
		"10 0-3 * * SUN": {func(w time.Time) bool { return w.Minute() == 10 && w.Hour() <= 3 && w.Weekday() == time.Sunday }, false, true},
		"0 3 * * 7":      {func(w time.Time) bool { return w.Minute() == 0 && w.Hour() == 3 && w.Weekday() == time.Sunday }, false, true},
		"55 23 31 * *":   {func(w time.Time) bool { return w.Minute() == 55 && w.Hour() == 23 && w.Day() == 31 }, false, true},
		"5 4 13 * 5": {func(w time.Time) bool {
			return w.Minute() == 5 && w.Hour() == 4 &&
				(w.Day() == 13 || w.Weekday() == 5)
		}, false, true},
		"0 20 1,2 2 2-3,5": {func(w time.Time) bool {
			return w.Minute() == 0 && w.Hour() == 20 && w.Month() == 2 && (w.Day() <= 2 ||
				w.Weekday() == 2 || w.Weekday() == 3 || w.Weekday() == 5)
		}, false, true},
	}
	for _, name := range four {
		zone, err := Zone(name)
		require.NoError(t, err)
		shown, absent := faces(zone, 2026)
		for expression, m := range expressions {
			for _, word := range []string{"", "once", "twice", "skip", "shift", "once,skip", "once shift", "skip,twice", "twice, shift"} {
				twice := strings.Contains(word, "twice") || m.twice && !strings.Contains(word, "once")
				shift := strings.Contains(word, "shift") || m.shift && !strings.Contains(word, "skip")
				want := map[int64]bool{}
				for _, f := range shown {
					if m.fits(f.wall) && (twice || !f.seen) {
						want[f.at] = true
					}
				}
				for _, f := range absent {
					if m.fits(f.wall) && shift {
						want[f.at] = true
					}
				}
				r := rule(t, Spec{Cron: expression, Timezone: name, DST: word})
				got, more := r.Slots(time.Date(2026, 1, 1, 0, 0, 0, 0, zone).UnixMilli(),
					time.Date(2027, 1, 1, 0, 0, 0, 0, zone).UnixMilli(), 200_000)
				require.False(t, more)
				require.NotEmpty(t, got)
				require.Equal(t, slices.Sorted(maps.Keys(want)), got, "%s in %s, dst %q", expression, name, word)
			}
		}
	}
}

func TestSlotsAtClockChanges(t *testing.T) {
	for _, tt := range []struct {
		name, zone, cron, dst, from string
		want                        []string
	}{
		{"02:30 does not exist", "Europe/Berlin", "30 2 * * *", "", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"02:30 is left out", "Europe/Berlin", "30 2 * * *", "skip", "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}},
		{"several are one slot at the end", "Europe/Berlin", "0,30 2,3 * * *", "",
			"2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z",
				"2026-03-30T00:00:00Z"}},
		{"every other hour", "Europe/Berlin", "0 */2 * * *", "", "2026-03-28T23:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		{"every hour keeps its distance", "Europe/Berlin", "5 * * * *", "", "2026-03-28T23:30:00Z",
			[]string{"2026-03-29T00:05:00Z", "2026-03-29T01:05:00Z"}},
		{"02:30 comes twice", "Europe/Berlin", "30 2 * * *", "", "2026-10-24T10:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"02:30 fires twice", "Europe/Berlin", "30 2 * * *", "twice", "2026-10-24T10:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		{"asked between the two", "Europe/Berlin", "30 2 * * *", "", "2026-10-25T00:45:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"a stepped hour goes through both", "Europe/Berlin", "*/30 * * * *", "",
			"2026-10-25T00:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z",
				"2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"}},
		{"it stands still", "Europe/Berlin", "*/30 * * * *", "once", "2026-10-25T00:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"}},
		{"west of Greenwich", "America/New_York", "30 2 * * *", "", "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		{"west of Greenwich, back", "America/New_York", "30 1 * * *", "", "2026-10-31T12:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{"half an hour forward", "Australia/Lord_Howe", "0,15,45 2 * * *", "",
			"2026-10-03T15:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-03T15:45:00Z",
				"2026-10-04T15:00:00Z"}},
		{"half an hour back", "Australia/Lord_Howe", "45 1 * * *", "", "2026-04-04T00:00:00Z",
			[]string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		{"midnight does not exist", "Africa/Cairo", "@daily", "", "2026-04-23T12:00:00Z",
			[]string{"2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}},
		{"midnight comes twice", "America/Havana", "@daily", "", "2026-10-31T12:00:00Z",
			[]string{"2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"}},
		{"a day that does not exist", "Pacific/Apia", "0 12 * * *", "skip", "2011-12-29T22:30:00Z", []string{"2011-12-30T22:00:00Z"}},
		{"a day that does not exist fires at its end", "Pacific/Apia", "0 12 * * *", "",
			"2011-12-29T22:30:00Z", []string{"2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
		{"the clock is never put forward", "Asia/Kolkata", "30 2 * * *", "", "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T21:00:00Z", "2026-03-29T21:00:00Z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rule(t, Spec{Cron: tt.cron, Timezone: tt.zone, DST: tt.dst})
			after := at(t, tt.from)
			for _, want := range tt.want {
				slot, ok := r.Next(after)
				require.True(t, ok)
				require.Equal(t, want, time.UnixMilli(slot).UTC().Format(time.RFC3339))
				after = slot
			}
		})
	}
}

func TestSlotsAtTheEndOfALeapYear(t *testing.T) {
	for _, zone := range four {
		r := rule(t, Spec{Cron: "30 2 * * *", Timezone: zone})
		for _, year := range []int{2027, 2028, 2032, 2096, 2100} {
			var want, got []string
			for day := range 8 {
				want = append(want, time.Date(year, 12, 28+day, 2, 30, 0, 0, time.UTC).Format("2006-01-02 15:04"))
			}
			from := time.Date(year, 12, 28, 0, 0, 0, 0, r.zone).UnixMilli()
			told := make(chan []Time, 1)
			go func() { told <- r.Preview(from, len(want)) }()
			select {
			case times := <-told:
				for _, slot := range times {
					got = append(got, time.UnixMilli(slot.Slot).In(r.zone).Format("2006-01-02 15:04"))
				}
			case <-time.After(10 * time.Second):
				require.FailNow(t, "nobody hears when it fires", "%s at the end of %d", zone, year)
			}
			require.Equal(t, want, got, "%s at the end of %d", zone, year)
		}
	}
}

func TestThePreviewNotesSkippedAndRepeatedTimes(t *testing.T) {
	for _, tt := range []struct{ cron, dst, from, local, want string }{
		{"30 2 * * *", "", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00",
			"in Europe/Berlin the clock is put forward: 2026-03-29 02:30 does not exist, and " +
				"fires at 2026-03-29 03:00"},
		{"30 2 * * *", "skip", "2026-03-28T12:00:00Z", "2026-03-30T02:30:00+02:00",
			"in Europe/Berlin the clock is put forward: 2026-03-29 02:30 does not exist, and is left out"},
		{"0,30 2 * * *", "", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00",
			"in Europe/Berlin the clock is put forward: 2026-03-29 02:00 to 2026-03-29 02:30 do " +
				"not exist, and are one slot at 2026-03-29 03:00"},
		{"*/15 * * * *", "", "2026-03-29T00:46:00Z", "2026-03-29T03:00:00+02:00",
			"in Europe/Berlin the clock is put forward: 2026-03-29 02:00 to 2026-03-29 02:45 do " +
				"not exist, and are left out"},
		{"30 2 * * *", "", "2026-10-24T12:00:00Z", "2026-10-25T02:30:00+02:00",
			"in Europe/Berlin the clock is put back: 2026-10-25 02:30 comes twice, and fires the first time"},
		{"30 2 * * *", "twice", "2026-10-24T12:00:00Z", "2026-10-25T02:30:00+02:00",
			"in Europe/Berlin the clock is put back: 2026-10-25 02:30 comes twice, and fires " +
				"both times, first now"},
		{"30 2 * * *", "twice", "2026-10-25T00:30:00Z", "2026-10-25T02:30:00+01:00",
			"in Europe/Berlin the clock was put back: 2026-10-25 02:30 has fired before, and fires again"},
		{"30 2 * * *", "", "2026-10-25T01:30:00Z", "2026-10-26T02:30:00+01:00", ""},
	} {
		times := rule(t, Spec{Cron: tt.cron, Timezone: "Europe/Berlin", DST: tt.dst}).Preview(at(t, tt.from), 1)
		require.Equal(t, tt.local, times[0].Local, "%+v", tt)
		require.Equal(t, tt.want, strings.Join(times[0].Notes, "; "), "%+v", tt)
	}
}

func TestTheNextClockChangeIsReported(t *testing.T) {
	for _, tt := range []struct{ cron, zone, dst, from, want string }{
		{"30 2 * * *", "Europe/Berlin", "", "2026-01-01T00:00:00Z",
			"in Europe/Berlin the clock is put forward from 2026-03-29 02:00 to 2026-03-29 " +
				"03:00: 2026-03-29 02:30 does not exist, and fires at 2026-03-29 03:00"},
		{"*/15 * * * *", "Europe/Berlin", "", "2026-04-01T00:00:00Z",
			"in Europe/Berlin the clock is put back from 2026-10-25 03:00 to 2026-10-25 02:00: " +
				"2026-10-25 02:00 to 2026-10-25 02:45 come twice, and fire both times"},
		{"30 2 * * *", "Europe/Berlin", "", "2026-04-01T00:00:00Z",
			"in Europe/Berlin the clock is put back from 2026-10-25 03:00 to 2026-10-25 02:00: " +
				"2026-10-25 02:30 comes twice, and fires the first time"},
		{"0 9 * * *", "Europe/Berlin", "", "2026-04-01T00:00:00Z",
			"in Europe/Berlin the clock is put back from 2026-10-25 03:00 to 2026-10-25 02:00, " +
				"which touches no slot"},
		{"0 9 * * *", "Asia/Kolkata", "", "2026-04-01T00:00:00Z", ""},
		{"0 9 * * *", "", "", "2026-04-01T00:00:00Z", ""},
	} {
		change, ok := rule(t, Spec{Cron: tt.cron, Timezone: tt.zone, DST: tt.dst}).NextChange(at(t, tt.from))
		require.Equal(t, tt.want != "", ok, "%+v", tt)
		require.Equal(t, tt.want, change.Note)
	}
	change, _ := rule(t, Spec{Cron: "@daily", Timezone: "Europe/Berlin"}).NextChange(at(t, "2026-01-01T00:00:00Z"))
	require.Equal(t, []any{at(t, "2026-03-29T01:00:00Z"), "2026-03-29T02:00:00+01:00",
		"2026-03-29T03:00:00+02:00"}, []any{change.At, change.Before, change.After})
	_, ok := rule(t, Spec{Cron: "@daily", Timezone: "Europe/Berlin",
		EndAt: at(t, "2026-03-29T01:00:00Z")}).NextChange(at(t, "2026-01-01T00:00:00Z"))
	require.False(t, ok, "there is no slot any more")
	_, ok = rule(t, Spec{EveryMS: 1000, Timezone: "Europe/Berlin"}).NextChange(0)
	require.False(t, ok, "it does not matter to an interval")
}

func TestTheDefaultForClockChangesDependsOnTheExpression(t *testing.T) {
	for expression, want := range map[string]string{
		"*/15 * * * *": "twice,skip", "* * * * *": "twice,skip", "@hourly": "twice,skip",
		"*/15 0-5 * * *": "twice,shift", "*/10 30 2 * * *": "twice,shift",
		"30 2 * * *": "once,shift", "0,30 2 * * *": "once,shift", "0 */2 * * *": "once,shift", "@daily": "once,shift",
	} {
		require.Equal(t, want, rule(t, Spec{Cron: expression}).DST(), expression)
	}
	require.Equal(t, "twice,shift", rule(t, Spec{Cron: "@daily", DST: "twice"}).DST())
	require.Empty(t, rule(t, Spec{EveryMS: 1000}).DST())
}

func TestSecondsShorthandsAndIntervals(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		from string
		want []string
	}{
		{Spec{Cron: "*/20 59 23 * * *"}, "2026-01-01T23:59:05Z", []string{"2026-01-01T23:59:20Z",
			"2026-01-01T23:59:40Z", "2026-01-02T23:59:00Z"}},
		{Spec{Cron: "@daily"}, "2026-01-01T00:00:00Z", []string{"2026-01-02T00:00:00Z"}},
		{Spec{Cron: "@weekly"}, "2026-01-01T00:00:00Z", []string{"2026-01-04T00:00:00Z"}},
		{Spec{Cron: "0 0 29 feb *"}, "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		{Spec{Cron: "0 9 * * mon-fri"}, "2026-01-02T10:00:00Z", []string{"2026-01-05T09:00:00Z"}},
		{Spec{Cron: "0 9 * * 5-7"}, "2026-01-02T10:00:00Z",
			[]string{"2026-01-03T09:00:00Z", "2026-01-04T09:00:00Z", "2026-01-09T09:00:00Z"}},
		{Spec{Cron: "@every 15m"}, "2026-01-01T00:01:00Z", []string{"2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"}},
		{Spec{EveryMS: 60_000, StartAt: 5_000}, "1970-01-01T00:00:01Z", []string{"1970-01-01T00:00:05Z", "1970-01-01T00:01:05Z"}},
		{Spec{Cron: "0 * * * *", StartAt: at(t, "2026-01-01T10:00:00Z"),
			EndAt: at(t, "2026-01-01T12:00:00Z")}, "2026-01-01T00:00:00Z",
			[]string{"2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", ""}},
	} {
		r, after := rule(t, tt.spec), at(t, tt.from)
		for _, want := range tt.want {
			slot, ok := r.Next(after)
			require.Equal(t, want != "", ok, "%+v", tt.spec)
			if ok {
				require.Equal(t, want, time.UnixMilli(slot).UTC().Format(time.RFC3339), "%+v", tt.spec)
			}
			after = slot
		}
	}
}

func TestInvalidSpecsAreRejectedWithFieldAndAdvice(t *testing.T) {
	for _, tt := range []struct {
		spec       Spec
		field, msg string
	}{
		{Spec{}, "cron", "nothing says when it fires"},
		{Spec{Cron: "* * *"}, "cron", "has 3 fields"},
		{Spec{Cron: "61 * * * *"}, "cron", `the minute "61" is none: write 0 to 59`},
		{Spec{Cron: "0 0 * * fry"}, "cron", `the weekday "fry" is none: write 0 to 7, or sun to sat`},
		{Spec{Cron: "0 22-6 * * *"}, "cron", "ends before it begins"},
		{Spec{Cron: "*/0 * * * *"}, "cron", "no step from 1 to 59"},
		{Spec{Cron: "0 0 30 2 *"}, "cron", "a day that never comes"},
		{Spec{Cron: "@often"}, "cron", "@every 15m"},
		{Spec{Cron: "@daily", EveryMS: 1000}, "every", "leave one of them out"},
		{Spec{EveryMS: 10}, "every", "is shorter than 1s"},
		{Spec{Cron: "@every 10ms"}, "cron", "is shorter than 1s: write 1s or more"},
		{Spec{Cron: "@daily", Timezone: "Europe/Bonn"}, "timezone", "there is no time zone"},
		{Spec{Cron: "@daily", CatchUp: "some"}, "catchup", "write one, none or all"},
		{Spec{Cron: "@daily", Overlap: "wait"}, "overlap", "write allow, skip, queue or cancel_running"},
		{Spec{Cron: "@daily", JitterMS: 1 + MaxJitter.Milliseconds()}, "jitter", "no more than 1h0m0s"},
		{Spec{Cron: "@daily", StartAt: 5, EndAt: 5}, "end", "not behind start"},
		{Spec{Cron: "@daily", DST: "thrice"}, "dst", "write once or twice"},
		{Spec{Cron: "@daily", DST: "once,twice"}, "dst", "says both once and twice"},
		{Spec{EveryMS: 1000, DST: "once"}, "dst", "leave it out"},
		{Spec{Cron: "CRON_TZ=Europe/Berlin 0 9 * * *"}, "cron", `write timezone: Europe/Berlin, and "0 9 * * *" as the expression`},
		{Spec{Cron: "TZ=UTC 0 9 * * *"}, "cron", "write timezone: UTC"},
		{Spec{Cron: "@reboot"}, "cron", "knows nothing of the start of members"},
		{Spec{Cron: "0 0 9 ? * mon"}, "cron", "? is of Quartz: write *"},
		{Spec{Cron: "0 9 L * *"}, "cron", "write 28-31"},
		{Spec{Cron: "0 9 * * 5L"}, "cron", "L (the last day) is not supported"},
		{Spec{Cron: "0 9 * * fri#2"}, "cron", "# (the nth weekday of a month) is not supported"},
		{Spec{Cron: "0 9 15W * *"}, "cron", "W (the nearest working day) is not supported"},
		{Spec{Cron: "H 9 * * *"}, "cron", "H is of Jenkins"},
	} {
		_, err := Read(tt.spec)
		var fault *Fault
		require.ErrorAs(t, err, &fault, "%+v", tt.spec)
		require.Equal(t, tt.field, fault.Field)
		require.Contains(t, fault.Msg, tt.msg)
	}
}

func TestEveryFaultOfASpecIsReported(t *testing.T) {
	_, err := Read(Spec{Cron: "61 * * * *", Timezone: "Berlin", DST: "thrice", CatchUp: "some",
		Overlap: "wait", JitterMS: -1, StartAt: 5, EndAt: 4})
	var faults Faults
	require.ErrorAs(t, err, &faults)
	var fields []string
	for _, fault := range faults {
		fields = append(fields, fault.Field)
	}
	require.Equal(t, []string{"timezone", "cron", "dst", "catchup", "overlap", "jitter", "end"}, fields)
	require.NotContains(t, err.Error(), "\n")
}

func TestNumberedWeekdaysInSixFieldsCauseAWarning(t *testing.T) {
	require.Contains(t, rule(t, Spec{Cron: "0 0 9 * * 1"}).Warnings()[0], "Monday")
	for _, fine := range []string{"0 9 * * 1", "0 0 9 * * mon", "0 0 9 * * *"} {
		require.Empty(t, rule(t, Spec{Cron: fine}).Warnings())
	}
}

func TestProbablyUnintendedSettingsCauseWarnings(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Cron: "*/40 * * * *"}, "the minute */40 counts anew from 0 in each hour: the last " +
			"one is at 40, and the next one 20 minutes later; every, such as 40m, keeps its distance"},
		{Spec{Cron: "0 */5 * * *"}, "the hour */5 counts anew from 0 in each day: the last one " +
			"is at 20, and the next one 4 hours later; every, such as 5h, keeps its distance"},
		{Spec{Cron: "0 0 13 * fri"}, "both the day of the month and the weekday are set: as in " +
			"crontab it fires when one of them fits, also each Friday; write * for one of them, " +
			"or check the other one in the flow"},
		{Spec{Cron: "@daily", DST: "twice"},
			"dst means nothing in UTC, where no clock is put forward or back: set timezone, " +
				"such as Europe/Berlin"},
		{Spec{Cron: "*/15 */6 * * *"}, ""}, {Spec{Cron: "*/10 * * * * *"}, ""}, {Spec{Cron: "0 0 */2 * *"}, ""},
	} {
		require.Equal(t, tt.want, strings.Join(append(rule(t, tt.spec).Warnings(), rule(t, tt.spec).Notes()...), "; "), "%+v", tt.spec)
	}
}

func TestJitterIsDeterministicAndDiffersBySlot(t *testing.T) {
	r := rule(t, Spec{Cron: "@hourly", JitterMS: 60_000})
	seen := map[int64]bool{}
	for slot := range int64(1000) {
		late := r.Fires("id", slot*3_600_000) - slot*3_600_000
		require.GreaterOrEqual(t, late, int64(0))
		require.LessOrEqual(t, late, int64(60_000))
		require.Equal(t, late, r.Fires("id", slot*3_600_000)-slot*3_600_000)
		seen[late] = true
	}
	require.Greater(t, len(seen), 900)
}

// TestAYearWithOutages runs a schedule in virtual time, with repeated outages: it catches up as its
// policy defines.
func TestAYearWithOutages(t *testing.T) {
	for _, name := range four {
		for _, catchup := range []CatchUp{CatchUpOne, CatchUpNone, CatchUpAll} {
			jitters := []int64{0}
			if name == four[0] {
				jitters = append(jitters, 90_000)
			}
			for _, jitter := range jitters {
				t.Run(name+" "+string(catchup), func(t *testing.T) {
					zone, err := Zone(name)
					require.NoError(t, err)
					year(t, rule(t, Spec{Cron: "20 */2 * * *", Timezone: name, CatchUp: catchup, JitterMS: jitter}), zone)
				})
			}
		}
	}
}

func year(t *testing.T, r *Rule, zone *time.Location) {
	rng := rand.New(rand.NewPCG(uint64(len(zone.String())), uint64(r.spec.JitterMS)))
	now, end := time.Date(2026, 1, 1, 0, 0, 0, 0, zone).UnixMilli(), time.Date(2027, 1, 1, 0, 0, 0, 0, zone).UnixMilli()
	s, began := State{After: now - 1}, now-1
	type outage struct{ from, to int64 }
	var outages []outage
	fired := map[int64]int64{} // slots, and when they fired
	for now < end {
		s = r.Decide("id", s, now, nil)
		for len(s.Starts) > 0 {
			slot := s.Starts[0].Slot
			require.Zero(t, fired[slot], "%d fired twice", slot)
			fired[slot] = now
			s = s.Began("task")
		}
		next := r.Looks("id", s)
		require.Greater(t, next, now)
		if rng.IntN(50) == 0 {
			away := now + 1 + rng.Int64N((30 * time.Hour).Milliseconds())
			outages = append(outages, outage{now, away})
			next = max(next, away)
		}
		now = next
	}
	slots, _ := r.Slots(began+1, s.After+1, 100_000)
	missed := map[outage][]int64{}
	for _, slot := range slots {
		due := r.Fires("id", slot)
		i := slices.IndexFunc(outages, func(o outage) bool { return due > o.from && due < o.to })
		if i < 0 {
			require.GreaterOrEqual(t, fired[slot], due, "%d was passed over, or fired too early", slot)
			continue
		}
		missed[outages[i]] = append(missed[outages[i]], slot)
	}
	require.NotEmpty(t, missed)
	for o, slots := range missed {
		caught := slices.DeleteFunc(slices.Clone(slots), func(slot int64) bool { return fired[slot] == 0 })
		last := slots[len(slots)-1]
		switch r.spec.CatchUp {
		case CatchUpAll:
			require.Equal(t, slots, caught)
		case CatchUpOne:
			require.Equal(t, []int64{last}, caught)
		case CatchUpNone:
			require.LessOrEqual(t, len(caught), 1)
			if len(caught) == 1 {
				require.LessOrEqual(t, o.to-last, MaxLate.Milliseconds()+r.spec.JitterMS)
			}
		}
	}
}

func TestCatchingUpIsBoundedAfterLongOutages(t *testing.T) {
	tenYears := at(t, "2036-01-01T00:00:00Z")
	for _, cron := range []string{"* * * * * *", "*/5 * * * *", "* * 1 1 *", "0 0 29 2 *"} {
		for catchup, most := range map[CatchUp]int{CatchUpOne: 1, CatchUpNone: 1, CatchUpAll: MaxCatchUp} {
			r := rule(t, Spec{Cron: cron, CatchUp: catchup})
			s := r.Decide("id", State{After: at(t, "2026-01-01T00:00:00Z")}, tenYears, nil)
			require.LessOrEqual(t, len(s.Starts), most)
			last, ok := r.latestSlot(0, tenYears)
			require.True(t, ok)
			require.Equal(t, last, s.After, "%s %s", cron, catchup)
			if catchup == CatchUpAll && cron != "0 0 29 2 *" {
				require.Len(t, s.Starts, MaxCatchUp)
				require.Equal(t, last, s.Starts[MaxCatchUp-1].Slot)
			}
		}
	}
}

func TestOverlap(t *testing.T) {
	minute := func(n int64) int64 { return n * 60_000 }
	starts := func(slots ...int64) (list []Start) {
		for _, slot := range slots {
			list = append(list, Start{Slot: slot})
		}
		return list
	}
	for _, tt := range []struct {
		name    string
		overlap Overlap
		state   State
		now     int64
		running []string
		want    State
	}{
		{"allow", OverlapAllow, State{}, minute(2), []string{"a"}, State{After: minute(2), Starts: starts(minute(1), minute(2))}},
		{"skip while one runs", OverlapSkip, State{}, minute(1), []string{"a"}, State{After: minute(1), Skipped: 1}},
		{"skip has one begin of those that are caught up", OverlapSkip, State{}, minute(3), nil,
			State{After: minute(3), Starts: starts(minute(1)), Skipped: 2}},
		{"one waits, others are skipped", OverlapQueue, State{}, minute(3), []string{"a"},
			State{After: minute(3), Queued: minute(1), Skipped: 2}},
		{"one waits behind what begins", OverlapQueue, State{}, minute(2), nil,
			State{After: minute(2), Starts: starts(minute(1)), Queued: minute(2)}},
		{"it waits on", OverlapQueue, State{After: minute(1), Queued: minute(1)}, minute(1) + 1,
			[]string{"a"}, State{After: minute(1), Queued: minute(1)}},
		{"it begins when nothing runs", OverlapQueue, State{After: minute(1), Queued: minute(1)},
			minute(1) + 1, nil, State{After: minute(1), Starts: starts(minute(1))}},
		{"the next one takes its place", OverlapQueue, State{After: minute(1), Queued: minute(1)},
			minute(2), nil, State{After: minute(2), Starts: starts(minute(1)), Queued: minute(2)}},
		{"what runs is canceled", OverlapCancel, State{}, minute(1), []string{"a", "b"},
			State{After: minute(1), Starts: []Start{{minute(1), []string{"a", "b"}}}}},
		{"of several the last one begins", OverlapCancel, State{}, minute(2), []string{"a"},
			State{After: minute(2), Starts: []Start{{minute(2), []string{"a"}}}, Skipped: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rule(t, Spec{Cron: "* * * * *", Overlap: tt.overlap, CatchUp: CatchUpAll})
			require.Equal(t, tt.want, r.Decide("id", tt.state, tt.now, tt.running))
		})
	}
}

func TestEveryTimeZoneCanBeRead(t *testing.T) {
	require.Contains(t, Zones(), "Europe/Berlin")
	for _, name := range Zones() {
		_, err := Zone(name)
		require.NoError(t, err, name)
	}
}
