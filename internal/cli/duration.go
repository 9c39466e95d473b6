package cli

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// parseDuration reads what Go reads (90s, 1h30m), and days and weeks before that: 30d, 2w, 1d12h.
func parseDuration(text string) (time.Duration, error) {
	rest, negative := strings.CutPrefix(text, "-")
	var sum time.Duration
	for _, unit := range []struct {
		name  string
		takes time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, after, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= 0 && n*float64(unit.takes) <= float64(longestDuration)) {
			return 0, notDuration(text)
		}
		sum, rest = sum+time.Duration(n*float64(unit.takes)), after
	}
	if rest != "" || sum == 0 && text != "0d" && text != "0w" {
		d, err := time.ParseDuration(rest)
		if err != nil || strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
			return 0, notDuration(text)
		}
		sum += d
	}
	if negative {
		sum = -sum
	}
	return sum, nil
}

// longestDuration is what days and weeks may come to: more would not fit into a Duration with what is behind them.
const longestDuration = 100 * 365 * 24 * time.Hour

func notDuration(text string) error {
	return fmt.Errorf("%q is no duration: write it like 90s, 1h30m or 30d", text)
}

// durations has flags read them.
var durations = kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := parseDuration(text)
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}))

// parseTime reads a time as RFC 3339 or our tables write it, or a date; without a zone it is that of this host.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, momentLayout, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// instants has flags read them.
var instants = kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
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
	return fmt.Errorf("%q is no time: write it like 2026-01-31 or 2026-01-31T02:30:00Z", text)
}
