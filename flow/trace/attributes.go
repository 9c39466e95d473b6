package trace

import (
	"cmp"
	"unicode/utf8"
)

// Attribute is a property of a span other than its name and times. The value is a text, an int or
// true.
type Attribute struct {
	Key   string
	Value any
}

// Attributes returns the attributes of a task's span under their public names.
func (s *Span) Attributes(task, flowName string, version int) []Attribute {
	all := []Attribute{{"troupe.task.id", task}, {"troupe.flow", flowName}, {"troupe.version", version}}
	for _, a := range []struct{ key, value string }{
		{"troupe.scope", s.At.Scope}, {"troupe.node", s.At.Node}, {"troupe.service", s.Service},
		{"troupe.worker", s.Worker}, {"troupe.member", s.Member},
		{"troupe.state", s.State}, {"troupe.reason", s.Reason},
	} {
		if a.value != "" {
			all = append(all, Attribute{a.key, a.value})
		}
	}
	if s.Failed {
		all = append(all, Attribute{"error.type", cmp.Or(s.Reason, "error")})
	}
	if s.At.Attempt > 0 {
		all = append(all, Attribute{"troupe.unit", s.At.Unit}, Attribute{"troupe.attempt", s.At.Attempt})
	}
	for _, n := range []struct {
		key   string
		value int
	}{{"troupe.visit", s.At.Visit}, {"troupe.units", s.Units}, {"troupe.units.failed", s.Failures}, {"troupe.spans.left_out", s.LeftOut}} {
		if n.value > 0 {
			all = append(all, Attribute{n.key, n.value})
		}
	}
	if s.Open {
		all = append(all, Attribute{"troupe.open", true})
	}
	return all
}

// maxText is the maximum number of bytes of an error that are included.
const maxText = 200

// Message returns the beginning of the error of a failed span.
func (s *Span) Message() string {
	if len(s.Error) <= maxText {
		return s.Error
	}
	end := maxText
	for !utf8.RuneStart(s.Error[end]) {
		end--
	}
	return s.Error[:end]
}
