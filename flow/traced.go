package flow

import (
	"strings"

	"github.com/troupe-engine/troupe/flow/codec"
)

// Traced is the relation of a task to the trace of a caller. A task without a Traced has a trace of
// its own, which is exported.
type Traced struct {
	// Parent is the span of the caller as a traceparent; "" if none was sent.
	Parent    string `json:"p,omitempty"`
	State     string `json:"s,omitempty"` // tracestate of the caller
	Link      bool   `json:"l,omitempty"` // the task has a trace of its own that links to the span
	Unsampled bool   `json:"u,omitempty"` // its spans are exported only if it fails
}

// Offsets in a traceparent: version, trace, span, flags.
const (
	traceAt, spanAt, flagsAt, parentLen = 3, 36, 53, 55
	maxTraceState                       = 512
)

// ReadTraced parses the headers of W3C Trace Context. It returns nil if there is no parent or the
// parent is invalid. If only the state is too long or has invalid characters, only the state is
// dropped.
func ReadTraced(parent, state string) *Traced {
	if !validParent(parent) {
		return nil
	}
	t := &Traced{Parent: "00" + parent[2:parentLen], Unsampled: hexDigit(parent[flagsAt+1])&1 == 0}
	if len(state) <= maxTraceState && !strings.ContainsFunc(state, func(r rune) bool { return r != '\t' && r < ' ' || r > '~' }) {
		t.State = strings.TrimSpace(state)
	}
	return t
}

// validParent reports whether a traceparent is valid. Later versions, which may have more fields at
// the end, are valid, too.
func validParent(p string) bool {
	switch {
	case len(p) < parentLen, p[:2] == "ff", p[:2] == "00" && len(p) > parentLen, len(p) > parentLen && p[parentLen] != '-':
		return false
	case p[2] != '-' || p[spanAt-1] != '-' || p[flagsAt-1] != '-':
		return false
	}
	return isHex(p[:2]) && isHex(p[traceAt:spanAt-1]) && isHex(p[spanAt:flagsAt-1]) && isHex(p[flagsAt:parentLen]) &&
		strings.Trim(p[traceAt:spanAt-1], "0") != "" && strings.Trim(p[spanAt:flagsAt-1], "0") != ""
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

func hexDigit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// Above returns the ids of the span that is the parent of the task, in hexadecimal; "" if the task
// has a trace of its own.
func (t *Traced) Above() (trace, span string) {
	if t == nil || t.Link {
		return "", ""
	}
	return t.Linked()
}

// Linked returns the ids of the span that was sent at the start, whether it is the parent of the
// task or only linked.
func (t *Traced) Linked() (trace, span string) {
	if t == nil || len(t.Parent) < parentLen {
		return "", ""
	}
	return t.Parent[traceAt : spanAt-1], t.Parent[spanAt : flagsAt-1]
}

// Sampled reports whether the spans of the task are exported regardless of how it ends.
func (t *Traced) Sampled() bool { return t == nil || !t.Unsampled }

// CodeTraced encodes and decodes a Traced.
func CodeTraced(c *codec.Codec, t *Traced) {
	codec.Text(c, &t.Parent)
	codec.Text(c, &t.State)
	c.Bool(&t.Link)
	c.Bool(&t.Unsampled)
}
