package rehearse

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// unit of time, as people write it.
type unit struct {
	name string
	d    time.Duration
}

var units = []unit{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"µs", time.Microsecond}}

// Span is a duration as people write it: 2d3h, 500ms.
func Span(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	if d < 0 {
		b.WriteByte('-')
		d = -d
	}
	for _, u := range units[1:] { // weeks are told as days
		if n := d / u.d; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.d
		}
	}
	return b.String()
}

// ParseSpan reads a duration: numbers with w, d, h, m, s or ms, such as 3w, 2d12h or 1.5s.
func ParseSpan(text string) (time.Duration, error) {
	rest, sum := strings.TrimSpace(text), time.Duration(0)
	if rest == "0" {
		return 0, nil
	}
	for rest != "" {
		digits := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if digits <= 0 {
			return 0, badSpan(text)
		}
		letters := strings.IndexFunc(rest[digits:], func(r rune) bool { return r == '.' || r >= '0' && r <= '9' })
		if letters < 0 {
			letters = len(rest) - digits
		}
		i := slices.IndexFunc(units, func(u unit) bool { return u.name == rest[digits:digits+letters] })
		if i < 0 {
			return 0, badSpan(text)
		}
		var n float64
		if _, err := fmt.Sscanf(rest[:digits], "%g", &n); err != nil || n*float64(units[i].d) > float64(maxSpan) {
			return 0, badSpan(text)
		}
		sum += time.Duration(n * float64(units[i].d))
		rest = rest[digits+letters:]
	}
	if sum > maxSpan || text == "" {
		return 0, badSpan(text)
	}
	return sum, nil
}

// maxSpan is the longest time that can be named.
const maxSpan = 100 * 365 * 24 * time.Hour

func badSpan(text string) error {
	return fmt.Errorf("%q is no duration: write such as 500ms, 90s, 2h30m, 2d or 3w, at most 100 years", text)
}
