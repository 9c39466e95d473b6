package trace

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/troupe-engine/troupe/flow"
)

type (
	// ID names a trace.
	ID [16]byte
	// SpanID names a span of a trace.
	SpanID [8]byte
)

func (id ID) String() string     { return hex.EncodeToString(id[:]) }
func (id SpanID) String() string { return hex.EncodeToString(id[:]) }

// IDOf is the trace of a task: the one that it was started in, or its own.
func IDOf(task string, t *flow.Traced) (id ID) {
	if above, _ := t.Above(); above != "" {
		return idOf(above)
	}
	h := sha256.Sum256([]byte(task))
	copy(id[:], h[:])
	return id
}

func idOf(text string) (id ID) {
	_, _ = hex.Decode(id[:], []byte(text)) // it was looked at when it was read
	return id
}

func spanOf(text string) (id SpanID) {
	_, _ = hex.Decode(id[:], []byte(text))
	return id
}

// SpanOf is the span of an attempt, or, with attempt 0, of a step, whoever asks and whenever.
func SpanOf(task string, a flow.Address) (id SpanID) {
	h := sha256.Sum256([]byte(flow.JobID(task, a)))
	copy(id[:], h[:])
	return id
}

// startOf is the span that all others of a task are below. There is no visit of that number.
func startOf(task string) SpanID { return SpanOf(task, flow.Address{Visit: -1}) }

// Parent is what whoever carries out an attempt is told of its span, as the header traceparent of
// W3C Trace Context: what it traces is below the attempt.
func Parent(task string, t *flow.Traced, a flow.Address) string {
	flags := "-01"
	if !t.Sampled() {
		flags = "-00"
	}
	return "00-" + IDOf(task, t).String() + "-" + SpanOf(task, a).String() + flags
}

// State is the tracestate that goes with Parent. It belongs to the trace of whoever told it.
func State(t *flow.Traced) string {
	if t == nil || t.Link {
		return ""
	}
	return t.State
}
