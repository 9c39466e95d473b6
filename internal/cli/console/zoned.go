package console

import (
	"cmp"
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/schedule"
)

// ZonedTime is a time from a flag. A time without a zone of its own is in the time zone of a
// schedule, which is unknown while flags are parsed.
type ZonedTime struct{ text string }

// ZonedTimeMapper makes flags read ZonedTime values.
var ZonedTimeMapper = kong.TypeMapper(reflect.TypeFor[ZonedTime](),
	kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("time", &text); err != nil {
			return err
		}
		if _, _, ok := readZoned(text, time.UTC); !ok {
			return notTime(text)
		}
		target.Set(reflect.ValueOf(ZonedTime{text}))
		return nil
	}))

// readZoned parses a time in the form of definitions or of printed tables. bare reports that the
// time has no zone, so that the given zone is used.
func readZoned(text string, zone *time.Location) (at time.Time, bare, ok bool) {
	if at, err := time.Parse(momentLayout, text); err == nil {
		return at, false, true
	}
	return schedule.ParseTime(text, zone)
}

// IsSet reports whether a time was given.
func (z ZonedTime) IsSet() bool { return z.text != "" }

// ZonedFlag is the name of a flag and its time.
type ZonedFlag struct {
	Name string
	Time ZonedTime
}

// ResolveZone resolves the times of flags and prints the results on stderr. Times without a zone
// are in the named one (default UTC).
func (a *App) ResolveZone(name string, flags ...ZonedFlag) ([]time.Time, error) {
	zone, err := schedule.Zone(name)
	if err != nil {
		return nil, NewUsageError("--timezone: %v", err)
	}
	times := make([]time.Time, len(flags))
	for i, flag := range flags {
		if !flag.Time.IsSet() {
			continue
		}
		at, bare, _ := readZoned(flag.Time.text, zone)
		if times[i] = at; bare {
			fmt.Fprintf(a.Stderr, "%s: --%s %s is %s, in the time zone of the schedule (%s)\n",
				a.Name, flag.Name, flag.Time.text, at.Format(time.RFC3339), cmp.Or(name, "UTC"))
		}
	}
	return times, nil
}

// FormatLocalTime formats a time as the local time of a zone.
func FormatLocalTime(t wire.Time, zone *time.Location) string { return t.In(zone).Format(time.RFC3339) }
