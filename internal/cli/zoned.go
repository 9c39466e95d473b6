package cli

import (
	"cmp"
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/schedule"
)

// zonedTime is a time from a flag. Without a zone of its own, it is in the time zone of a schedule,
// which the flag does not know.
type zonedTime struct{ text string }

// zonedTimes makes flags read such times.
var zonedTimes = kong.TypeMapper(reflect.TypeFor[zonedTime](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	if _, _, ok := readZoned(text, time.UTC); !ok {
		return notTime(text)
	}
	target.Set(reflect.ValueOf(zonedTime{text}))
	return nil
}))

// readZoned parses a time in the form of definitions or of our tables. A time without a zone, which
// bare reports, is in the given one.
func readZoned(text string, zone *time.Location) (at time.Time, bare, ok bool) {
	if at, err := time.Parse(momentLayout, text); err == nil {
		return at, false, true
	}
	return schedule.ParseTime(text, zone)
}

func (z zonedTime) isSet() bool { return z.text != "" }

// zonedFlag is the name of a flag and its time.
type zonedFlag struct {
	name string
	time zonedTime
}

// inZone resolves the times of flags, those without a zone in the given one (default UTC), and
// prints the results on stderr.
func (a *app) inZone(name string, flags ...zonedFlag) ([]time.Time, error) {
	zone, err := schedule.Zone(name)
	if err != nil {
		return nil, newUsageError("--timezone: %v", err)
	}
	times := make([]time.Time, len(flags))
	for i, flag := range flags {
		if !flag.time.isSet() {
			continue
		}
		at, bare, _ := readZoned(flag.time.text, zone)
		if times[i] = at; bare {
			fmt.Fprintf(a.stderr, "%s: --%s %s is %s, in the time zone of the schedule (%s)\n",
				a.name, flag.name, flag.time.text, at.Format(time.RFC3339), cmp.Or(name, "UTC"))
		}
	}
	return times, nil
}

// localText formats a time as the local time of a zone.
func localText(t wire.Time, zone *time.Location) string { return t.In(zone).Format(time.RFC3339) }
