package flow

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Limits prevent a task from harming other tasks. Zero fields mean the default.
type Limits struct {
	Depth      int // maximum nesting of scopes
	Units      int // maximum units of a step
	Steps      int // maximum steps of a task in its whole life
	Window     int // maximum attempts of a step in flight
	Deliveries int // maximum deliveries of an attempt
	Events     int // maximum events of a decision
	// maximum bytes of a scope's shared, and of the combined outputs of a step or branch
	Shared int
	Value  int // maximum bytes of an output, a signal, the params, or a combined input
	Levels int // maximum depth of arrays and objects in any value; at most the default
}

// DefaultLimits are the limits for fields that are zero.
var DefaultLimits = Limits{
	Depth: 16, Units: 100_000, Steps: 1_000_000, Window: 2_000, Deliveries: 5, Events: 1_000,
	Value: 1 << 20, Shared: 64 << 20, Levels: 1_000,
}

// OrDefault returns the limits with zero fields replaced by their defaults.
func (l Limits) OrDefault() Limits {
	d := DefaultLimits
	set := func(to *int, v int) {
		if v > 0 {
			*to = v
		}
	}
	set(&d.Depth, l.Depth)
	set(&d.Units, l.Units)
	set(&d.Steps, l.Steps)
	set(&d.Window, l.Window)
	set(&d.Deliveries, l.Deliveries)
	set(&d.Events, l.Events)
	set(&d.Value, l.Value)
	set(&d.Shared, l.Shared)
	// the store cannot read values that are deeper than ten times the default
	set(&d.Levels, min(l.Levels, d.Levels))
	return d
}

// CheckJSON rejects a value that is not JSON in UTF-8. An empty value is accepted.
func CheckJSON(v json.RawMessage) error {
	if len(v) == 0 || expr.Valid(v) && utf8.Valid(v) {
		return nil
	}
	return errors.New("is no valid JSON in UTF-8")
}

// checkValue rejects a value that is too large or too deep, or that a store could not hold.
func (l Limits) checkValue(what string, v json.RawMessage) error {
	if len(v) > l.Value {
		return Errorf(Limit, "%s has %d bytes, more than the limit of %d; keep large data "+
			"elsewhere and pass a reference", what, len(v), l.Value)
	}
	if !utf8.Valid(v) {
		return Errorf(Invalid, "%s is not UTF-8 text", what)
	}
	if expr.Deeper(v, l.Levels) {
		return l.tooDeep(what)
	}
	return nil
}

// Takes reports whether a task accepts a value from outside.
func (l Limits) Takes(v json.RawMessage) bool {
	return CheckJSON(v) == nil && l.OrDefault().checkValue("", v) == nil
}

func (l Limits) tooDeep(what string) error {
	return Errorf(Limit, "%s nests arrays and objects deeper than %d levels: make it flatter, or pass it as a text", what, l.Levels)
}

// Maximum lengths of texts from outside: names (of flows, services, functions, labels, workers,
// keys, requests), descriptions of flows, and errors of one attempt or of all units of a step
// together.
const (
	MaxName        = 256
	MaxLabels      = 1000
	maxErrorText   = 64 << 10
	maxDetails     = 64 << 10 // details of an error
	maxMetrics     = 64 << 10 // metrics of an attempt
	MaxDescription = 16 << 10
)

// truncateText cuts a text from outside to the length that an event may hold. It replaces invalid
// UTF-8, because the journal would return it as a different text.
func truncateText(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// MaxDelay is the longest duration that a definition, a task's params or a command may contain:
// about three thousand years in milliseconds. Sums of such durations and the clock stay far below
// the maximum of an int64.
const MaxDelay = 100_000_000_000_000

// maxDuration is the limit of Milliseconds. A time.Duration overflows at 292 years, so callers can
// add to a result without an overflow.
const maxDuration = 100 * 365 * 24 * time.Hour

// Milliseconds converts milliseconds to a time.Duration for waiting. A negative value becomes 0,
// and a value above a hundred years becomes a hundred years.
func Milliseconds(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), maxDuration.Milliseconds())) * time.Millisecond
}

// timeAfter returns the time the given number of milliseconds from now.
func (d *decider) timeAfter(ms int64) int64 { return d.env.Now + min(max(ms, 0), MaxDelay) }

// CanonicalJSON returns a text that is the same for all spellings of a JSON value, and different
// for different values; see expr.Canonical.
func CanonicalJSON(v json.RawMessage) []byte { return expr.Canonical(v) }

// NoText is the error text for a name for which IsText is false.
const NoText = "is not UTF-8 text, or holds the character U+0000: no store can keep it"

// IsText reports whether every store can hold and find a name. This does not apply to values, which
// may contain everything that JSON allows.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// NoName is the error text for a name for which IsName is false.
const NoName = "holds the character U+FFFD, which stands for text that was lost, such as half " +
	"of a surrogate pair (\"\\ud800\"): send the whole text as UTF-8"

// IsName reports whether a text can identify something: stores can hold it, and no part of it was
// lost on the way.
func IsName(s string) bool { return IsText(s) && !strings.ContainsRune(s, utf8.RuneError) }

// CheckNames rejects names for which IsName is false. The error contains the given description.
func CheckNames(what string, names ...string) error {
	if err := CheckText(what, names...); err != nil {
		return err
	}
	for _, name := range names {
		if !IsName(name) {
			return Errorf(Invalid, "%s %.80q %s", what, name, NoName)
		}
	}
	return nil
}

// CheckText rejects names for which IsText is false. The error contains the given description.
func CheckText(what string, names ...string) error {
	for _, name := range names {
		if !IsText(name) {
			return Errorf(Invalid, "%s %.80q %s", what, name, NoText)
		}
	}
	return nil
}

// CheckName rejects a name that CheckNames rejects or that is too long.
func CheckName(what, name string) error {
	if len(name) > MaxName {
		return Errorf(Invalid, "%s has %d bytes, more than the limit of %d", what, len(name), MaxName)
	}
	return CheckNames(what, name)
}

// CheckDescription rejects a description that is too long or that no store can hold.
func CheckDescription(text string) error {
	if len(text) > MaxDescription {
		return Errorf(Invalid, "the description has %d bytes, more than the limit of %d", len(text), MaxDescription)
	}
	return CheckText("the description", text)
}
