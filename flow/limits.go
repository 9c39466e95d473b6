package flow

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Limits keep one task from harming the others. Zero fields mean the default.
type Limits struct {
	Depth      int // of nested scopes
	Units      int // of one step
	Steps      int // of one task, over its whole life
	Window     int // attempts of one step in flight at once
	Deliveries int // of one attempt
	Events     int // of one decision
	Shared     int // bytes of a scope's shared, and of what a step or branch makes of the outputs inside it
	Value      int // bytes of one output, one signal, the params, or an input put together of parts
	Levels     int // of arrays and objects inside each other, in any value; at most the default
}

// DefaultLimits are in force where Limits says nothing.
var DefaultLimits = Limits{
	Depth: 16, Units: 100_000, Steps: 1_000_000, Window: 2_000, Deliveries: 5, Events: 1_000, Value: 1 << 20, Shared: 64 << 20, Levels: 1_000,
}

// OrDefault fills what is zero.
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
	set(&d.Levels, min(l.Levels, d.Levels)) // a value deeper than ten times that cannot be read from the store again
	return d
}

// CheckJSON refuses what is no JSON value in UTF-8. Nothing at all is fine.
func CheckJSON(v json.RawMessage) error {
	if len(v) == 0 || expr.Valid(v) && utf8.Valid(v) {
		return nil
	}
	return errors.New("is no valid JSON in UTF-8")
}

// checkValue refuses what is too large or nested too deep to be carried about, and what a store
// could not keep.
func (l Limits) checkValue(what string, v json.RawMessage) error {
	if len(v) > l.Value {
		return Errorf(Limit, "%s has %d bytes, more than the limit of %d; keep large data elsewhere and pass a reference", what, len(v), l.Value)
	}
	if !utf8.Valid(v) {
		return Errorf(Invalid, "%s is not UTF-8 text", what)
	}
	if expr.Deeper(v, l.Levels) {
		return l.tooDeep(what)
	}
	return nil
}

// Takes reports whether a value of somebody outside is one that a task takes.
func (l Limits) Takes(v json.RawMessage) bool {
	return CheckJSON(v) == nil && l.OrDefault().checkValue("", v) == nil
}

func (l Limits) tooDeep(what string) error {
	return Errorf(Limit, "%s nests arrays and objects deeper than %d levels: make it flatter, or pass it as a text", what, l.Levels)
}

// Bounds of texts that others write: names (of flows, services, functions, labels, workers, keys,
// requests), errors, of one attempt or of all units of a step together, and what a flow says of
// itself.
const (
	MaxName        = 256
	MaxLabels      = 1000
	maxErrorText   = 64 << 10
	maxDetails     = 64 << 10 // of an error
	maxMetrics     = 64 << 10 // of an attempt
	MaxDescription = 16 << 10
)

// truncateText cuts a text of others to what an event may hold. What is not UTF-8 would come back
// from the journal as another text, so it is replaced before it goes in.
func truncateText(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// MaxDelay is the longest time that a definition, a task's params or a command may name, about
// three thousand years: sums of such times and of the clock are far from what an int64 of
// milliseconds ends at.
const MaxDelay = 100_000_000_000_000

// maxDuration is what Milliseconds cuts a time to. A time.Duration ends at 292 years; whoever adds
// to this one stays below that.
const maxDuration = 100 * 365 * 24 * time.Hour

// Milliseconds makes a Duration of so many of them, for whoever has to wait: a time that is in the
// past is none, and one that a Duration could not hold is a hundred years.
func Milliseconds(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), maxDuration.Milliseconds())) * time.Millisecond
}

// timeAfter is the time so many milliseconds from now.
func (d *decider) timeAfter(ms int64) int64 { return d.env.Now + min(max(ms, 0), MaxDelay) }

// CanonicalJSON returns a text that all spellings of a JSON value share, and no other value has;
// see expr.Canonical.
func CanonicalJSON(v json.RawMessage) []byte { return expr.Canonical(v) }

// NoText is what is wrong with a name that is not IsText.
const NoText = "is not UTF-8 text, or holds the character U+0000: no store can keep it"

// IsText reports whether a name is one that every store can keep and look for. Values may hold
// anything that JSON may.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// NoName is what is wrong with a text that is no IsName.
const NoName = "holds the character U+FFFD, which stands for text that was lost, such as half of a surrogate pair (\"\\ud800\"): send the whole text as UTF-8"

// IsName reports whether a text can tell something from everything else: it is one that stores
// keep, and none of it was lost on the way.
func IsName(s string) bool { return IsText(s) && !strings.ContainsRune(s, utf8.RuneError) }

// CheckNames refuses names that are not IsName; what they are is said in the error.
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

// CheckText refuses names that are not IsText; what they are is said in the error.
func CheckText(what string, names ...string) error {
	for _, name := range names {
		if !IsText(name) {
			return Errorf(Invalid, "%s %.80q %s", what, name, NoText)
		}
	}
	return nil
}

// CheckName refuses what CheckNames refuses, and what is too long for a name.
func CheckName(what, name string) error {
	if len(name) > MaxName {
		return Errorf(Invalid, "%s has %d bytes, more than the limit of %d", what, len(name), MaxName)
	}
	return CheckNames(what, name)
}

// CheckDescription is CheckName for a text that people read.
func CheckDescription(text string) error {
	if len(text) > MaxDescription {
		return Errorf(Invalid, "the description has %d bytes, more than the limit of %d", len(text), MaxDescription)
	}
	return CheckText("the description", text)
}
