package flow

import (
	"strings"

	"github.com/troupe-engine/troupe/flow/codec"
)

// Traced is how a task belongs to the traces of those around it. A task without one has a trace of
// its own, which is told.
type Traced struct {
	Parent    string `json:"p,omitempty"` // the span of whoever started it, as a traceparent; "" = nobody told one
	State     string `json:"s,omitempty"` // what its tracestate was
	Link      bool   `json:"l,omitempty"` // it only points there, and has a trace of its own
	Unsampled bool   `json:"u,omitempty"` // its spans are not told unless it fails
}

// Places in a traceparent: version, trace, span, flags.
const (
	traceAt, spanAt, flagsAt, parentLen = 3, 36, 53, 55
	maxTraceState                       = 512
)

// ReadTraced reads the headers of W3C Trace Context; nil when there is no parent, or one that has
// to be ignored. A state that is too long, or has what no header has, is ignored alone.
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

// validParent knows later versions, too, which may say more behind what the first one says.
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

// Above are the ids of the span that the task is below, in hexadecimal; "" when it has a trace of
// its own.
func (t *Traced) Above() (trace, span string) {
	if t == nil || t.Link {
		return "", ""
	}
	return t.Linked()
}

// Linked are the ids of the span that was told at the start, whether the task is below it or points
// to it.
func (t *Traced) Linked() (trace, span string) {
	if t == nil || len(t.Parent) < parentLen {
		return "", ""
	}
	return t.Parent[traceAt : spanAt-1], t.Parent[spanAt : flagsAt-1]
}

// Sampled reports whether the task's spans are told however it ends.
func (t *Traced) Sampled() bool { return t == nil || !t.Unsampled }

// CodeTraced is how it travels.
func CodeTraced(c *codec.Codec, t *Traced) {
	codec.Text(c, &t.Parent)
	codec.Text(c, &t.State)
	c.Bool(&t.Link)
	c.Bool(&t.Unsampled)
}
