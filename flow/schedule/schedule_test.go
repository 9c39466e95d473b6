package schedule

import (
	"math/rand/v2"
	"slices"
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

// four zones: put forward and back by an hour, north of the equator; by half an hour, south of it; and never.
var four = []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"}

// wallClock is what the clock of a zone shows at a time.
type wallClock struct {
	at   int64
	wall time.Time
}

// shown goes through a year in steps of five minutes, and keeps when the wall clock shows each time first. It knows nothing of zones but what the clock shows.
func shown(zone *time.Location, year int) (faces []wallClock) {
	seen := map[[4]int]bool{}
	from, to := time.Date(year, 1, 1, 0, 0, 0, 0, zone), time.Date(year+1, 1, 1, 0, 0, 0, 0, zone)
	for at := from; at.Before(to); at = at.Add(5 * time.Minute) {
		wall := at.In(zone)
		if face := [4]int{int(wall.Month()), wall.Day(), wall.Hour(), wall.Minute()}; !seen[face] {
			seen[face] = true
			faces = append(faces, wallClock{at.UnixMilli(), wall})
		}
	}
	return faces
}

func TestOverAYearASlotIsWhatTheWallClockShowsFirst(t *testing.T) {
	expressions := map[string]func(time.Time) bool{
		"30 2 * * *":     func(w time.Time) bool { return w.Hour() == 2 && w.Minute() == 30 },
		"45 1 * * *":     func(w time.Time) bool { return w.Hour() == 1 && w.Minute() == 45 },
		"*/15 * * * *":   func(w time.Time) bool { return w.Minute()%15 == 0 },
		"10 0-3 * * SUN": func(w time.Time) bool { return w.Minute() == 10 && w.Hour() <= 3 && w.Weekday() == time.Sunday },
		"0 3 * * 7":      func(w time.Time) bool { return w.Minute() == 0 && w.Hour() == 3 && w.Weekday() == time.Sunday },
		"55 23 31 * *":   func(w time.Time) bool { return w.Minute() == 55 && w.Hour() == 23 && w.Day() == 31 },
		"5 4 13 * 5":     func(w time.Time) bool { return w.Minute() == 5 && w.Hour() == 4 && (w.Day() == 13 || w.Weekday() == 5) },
		"0 20 1,2 2 2-3,5": func(w time.Time) bool {
			return w.Minute() == 0 && w.Hour() == 20 && w.Month() == 2 && (w.Day() <= 2 || w.Weekday() == 2 || w.Weekday() == 3 || w.Weekday() == 5)
		},
	}
	for _, name := range four {
		zone, err := Zone(name)
		require.NoError(t, err)
		faces := shown(zone, 2026)
		for expression, meant := range expressions {
			var want []int64
			for _, face := range faces {
				if meant(face.wall) {
					want = append(want, face.at)
				}
			}
			r := rule(t, Spec{Cron: expression, Timezone: name})
			got, more := r.Slots(time.Date(2026, 1, 1, 0, 0, 0, 0, zone).UnixMilli(), time.Date(2027, 1, 1, 0, 0, 0, 0, zone).UnixMilli(), 100_000)
			require.False(t, more)
			require.True(t, slices.Equal(want, got), "%s in %s", expression, name)
			require.NotEmpty(t, got)
		}
	}
}

func TestClocksThatArePutForwardAndBack(t *testing.T) {
	for _, tt := range []struct {
		name, zone, cron, from string
		want                   []string
	}{
		{"02:30 does not exist", "Europe/Berlin", "30 2 * * *", "2026-03-28T00:00:00Z", []string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}},
		{"02:30 comes twice", "Europe/Berlin", "30 2 * * *", "2026-10-24T10:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"asked between the two", "Europe/Berlin", "30 2 * * *", "2026-10-25T00:45:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"all of the hour that comes twice", "Europe/Berlin", "*/30 * * * *", "2026-10-25T00:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"}},
		{"west of Greenwich", "America/New_York", "30 2 * * *", "2026-03-07T12:00:00Z", []string{"2026-03-09T06:30:00Z"}},
		{"west of Greenwich, back", "America/New_York", "30 1 * * *", "2026-10-31T12:00:00Z", []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{"half an hour forward", "Australia/Lord_Howe", "0,15,45 2 * * *", "2026-10-03T15:00:00Z", []string{"2026-10-03T15:45:00Z", "2026-10-04T15:00:00Z"}},
		{"half an hour back", "Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		{"a day that does not exist", "Pacific/Apia", "0 12 * * *", "2011-12-29T22:30:00Z", []string{"2011-12-30T22:00:00Z"}},
		{"the clock is never put forward", "Asia/Kolkata", "30 2 * * *", "2026-03-28T00:00:00Z", []string{"2026-03-28T21:00:00Z", "2026-03-29T21:00:00Z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rule(t, Spec{Cron: tt.cron, Timezone: tt.zone})
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

func TestTheEndOfALeapYearIsLikeThatOfAnyOther(t *testing.T) {
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

func TestThePreviewTellsWhatBecomesOfSuchTimes(t *testing.T) {
	r := rule(t, Spec{Cron: "30 2 * * *", Timezone: "Europe/Berlin"})
	spring := r.Preview(at(t, "2026-03-28T12:00:00Z"), 1)
	require.Equal(t, []Time{{Slot: at(t, "2026-03-30T00:30:00Z"), Local: "2026-03-30T02:30:00+02:00",
		Notes: []string{"2026-03-29 02:30:00 does not exist in Europe/Berlin, since the clock is put forward: it is left out"}}}, spring)
	autumn := r.Preview(at(t, "2026-10-24T12:00:00Z"), 2)
	require.Equal(t, []string{"2026-10-25 02:30:00 comes twice in Europe/Berlin, since the clock is put back: it fires the first time"}, autumn[0].Notes)
	require.Empty(t, autumn[1].Notes)
}

func TestSecondsShorthandsAndIntervals(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		from string
		want []string
	}{
		{Spec{Cron: "*/20 59 23 * * *"}, "2026-01-01T23:59:05Z", []string{"2026-01-01T23:59:20Z", "2026-01-01T23:59:40Z", "2026-01-02T23:59:00Z"}},
		{Spec{Cron: "@daily"}, "2026-01-01T00:00:00Z", []string{"2026-01-02T00:00:00Z"}},
		{Spec{Cron: "@weekly"}, "2026-01-01T00:00:00Z", []string{"2026-01-04T00:00:00Z"}},
		{Spec{Cron: "0 0 29 feb *"}, "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		{Spec{Cron: "0 9 * * mon-fri"}, "2026-01-02T10:00:00Z", []string{"2026-01-05T09:00:00Z"}},
		{Spec{Cron: "0 9 * * 5-7"}, "2026-01-02T10:00:00Z", []string{"2026-01-03T09:00:00Z", "2026-01-04T09:00:00Z", "2026-01-09T09:00:00Z"}},
		{Spec{Cron: "@every 15m"}, "2026-01-01T00:01:00Z", []string{"2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"}},
		{Spec{EveryMS: 60_000, StartAt: 5_000}, "1970-01-01T00:00:01Z", []string{"1970-01-01T00:00:05Z", "1970-01-01T00:01:05Z"}},
		{Spec{Cron: "0 * * * *", StartAt: at(t, "2026-01-01T10:00:00Z"), EndAt: at(t, "2026-01-01T12:00:00Z")}, "2026-01-01T00:00:00Z", []string{"2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", ""}},
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

func TestWhatMeansNothingIsRefusedWithTheFieldAndWhatToWrite(t *testing.T) {
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
		{Spec{Cron: "@daily", Timezone: "Europe/Bonn"}, "timezone", "there is no time zone"},
		{Spec{Cron: "@daily", CatchUp: "some"}, "catchup", "write one, none or all"},
		{Spec{Cron: "@daily", Overlap: "wait"}, "overlap", "write allow, skip, queue or cancel_running"},
		{Spec{Cron: "@daily", JitterMS: 1 + MaxJitter.Milliseconds()}, "jitter", "no more than 1h0m0s"},
		{Spec{Cron: "@daily", StartAt: 5, EndAt: 5}, "end", "not behind start"},
	} {
		_, err := Read(tt.spec)
		var fault *Fault
		require.ErrorAs(t, err, &fault, "%+v", tt.spec)
		require.Equal(t, tt.field, fault.Field)
		require.Contains(t, fault.Msg, tt.msg)
	}
}

func TestSixFieldsWithANumberedWeekdaySayWhichDayTheyMean(t *testing.T) {
	require.Contains(t, rule(t, Spec{Cron: "0 0 9 * * 1"}).Warning(), "Monday")
	for _, fine := range []string{"0 9 * * 1", "0 0 9 * * mon", "0 0 9 * * *"} {
		require.Empty(t, rule(t, Spec{Cron: fine}).Warning())
	}
}

func TestJitterIsTheSameWhereverItIsComputedAndDiffersBySlot(t *testing.T) {
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

// TestAYearWithOutages has a schedule looked after in virtual time, by somebody who is away again and again: what catches up is what its policy says.
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
	fired := map[int64]int64{} // slots, and when
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

func TestCatchingUpIsBoundedHoweverLongNobodyLooked(t *testing.T) {
	tenYears := at(t, "2036-01-01T00:00:00Z")
	for _, cron := range []string{"* * * * * *", "*/5 * * * *", "* * 1 1 *", "0 0 29 2 *"} {
		for catchup, most := range map[CatchUp]int{CatchUpOne: 1, CatchUpNone: 1, CatchUpAll: MaxCatchUp} {
			r := rule(t, Spec{Cron: cron, CatchUp: catchup})
			s := r.Decide("id", State{After: at(t, "2026-01-01T00:00:00Z")}, tenYears, nil)
			require.LessOrEqual(t, len(s.Starts), most)
			last, ok := r.latest(0, tenYears)
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
		{"skip has one begin of those that are caught up", OverlapSkip, State{}, minute(3), nil, State{After: minute(3), Starts: starts(minute(1)), Skipped: 2}},
		{"one waits, others are skipped", OverlapQueue, State{}, minute(3), []string{"a"}, State{After: minute(3), Queued: minute(1), Skipped: 2}},
		{"one waits behind what begins", OverlapQueue, State{}, minute(2), nil, State{After: minute(2), Starts: starts(minute(1)), Queued: minute(2)}},
		{"it waits on", OverlapQueue, State{After: minute(1), Queued: minute(1)}, minute(1) + 1, []string{"a"}, State{After: minute(1), Queued: minute(1)}},
		{"it begins when nothing runs", OverlapQueue, State{After: minute(1), Queued: minute(1)}, minute(1) + 1, nil, State{After: minute(1), Starts: starts(minute(1))}},
		{"the next one takes its place", OverlapQueue, State{After: minute(1), Queued: minute(1)}, minute(2), nil, State{After: minute(2), Starts: starts(minute(1)), Queued: minute(2)}},
		{"what runs is canceled", OverlapCancel, State{}, minute(1), []string{"a", "b"}, State{After: minute(1), Starts: []Start{{minute(1), []string{"a", "b"}}}}},
		{"of several the last one begins", OverlapCancel, State{}, minute(2), []string{"a"}, State{After: minute(2), Starts: []Start{{minute(2), []string{"a"}}}, Skipped: 1}},
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
