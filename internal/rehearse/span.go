package rehearse

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow/duration"
)

// timeUnit is a unit of time.
type timeUnit struct {
	name string
	d    time.Duration
}

var timeUnits = []timeUnit{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour},
	{"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"µs", time.Microsecond}}

// Span formats a duration in the way people write it: 2d3h, 500ms.
func Span(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	if d < 0 {
		b.WriteByte('-')
		d = -d
	}
	for _, u := range timeUnits[1:] { // weeks are written as days
		if n := d / u.d; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.d
		}
	}
	return b.String()
}

// ParseSpan parses a duration such as 3w, 2d12h or 1.5s.
func ParseSpan(text string) (time.Duration, error) { return duration.Parse(strings.TrimSpace(text)) }
