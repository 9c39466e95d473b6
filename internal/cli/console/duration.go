package console

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe/flow/duration"
)

// DurationMapper makes flags read durations.
var DurationMapper = kong.TypeMapper(reflect.TypeFor[time.Duration](),
	kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
			return err
		}
		// for some flags, such as --retention, a negative value means never
		rest, negative := strings.CutPrefix(text, "-")
		d, err := duration.Parse(rest)
		if err != nil {
			return err
		}
		if negative {
			d = -d
		}
		target.SetInt(int64(d))
		return nil
	}))

// parseTime parses RFC 3339, the form of printed tables, or a date. A time without a zone is in the
// zone of this host.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, momentLayout, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// TimeMapper makes flags read times.
var TimeMapper = kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	t, ok := parseTime(text)
	if !ok {
		return notTime(text)
	}
	target.Set(reflect.ValueOf(t))
	return nil
}))

func notTime(text string) error {
	return fmt.Errorf("invalid time %q: use 2026-01-31 or 2026-01-31T02:30:00Z", text)
}

// ParseSince parses a time, or a duration before now; "" gives the zero time.
func ParseSince(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := duration.Parse(text); err == nil {
		return now.Add(-d), nil
	}
	if t, ok := parseTime(text); ok {
		return t, nil
	}
	return time.Time{}, NewUsageError("%s %q: use a duration such as 90m or a time such as 2026-01-31", flag, text)
}
