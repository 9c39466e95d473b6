package trace

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/troupe-engine/troupe/flow"
)

type (
	// ID is the id of a trace.
	ID [16]byte
	// SpanID is the id of a span in a trace.
	SpanID [8]byte
)

func (id ID) String() string     { return hex.EncodeToString(id[:]) }
func (id SpanID) String() string { return hex.EncodeToString(id[:]) }

// IDOf returns the trace of a task: the trace in which the task was started, or its own.
func IDOf(task string, t *flow.Traced) (id ID) {
	if above, _ := t.Above(); above != "" {
		return idOf(above)
	}
	h := sha256.Sum256([]byte(task))
	copy(id[:], h[:])
	return id
}

func idOf(text string) (id ID) {
	_, _ = hex.Decode(id[:], []byte(text)) // valid, because it was checked when it was read
	return id
}

func spanOf(text string) (id SpanID) {
	_, _ = hex.Decode(id[:], []byte(text))
	return id
}

// SpanOf returns the id of the span of an attempt, or with attempt 0 of a step. Equal arguments
// give equal ids.
func SpanOf(task string, a flow.Address) (id SpanID) {
	h := sha256.Sum256([]byte(flow.JobID(task, a)))
	copy(id[:], h[:])
	return id
}

// startOf returns the id of the span that is the ancestor of all other spans of a task. No visit
// has the number -1.
func startOf(task string) SpanID { return SpanOf(task, flow.Address{Visit: -1}) }

// Parent returns the header traceparent of W3C Trace Context for the carrier of an attempt. With
// this header the carrier's spans become children of the attempt.
func Parent(task string, t *flow.Traced, a flow.Address) string {
	flags := "-01"
	if !t.Sampled() {
		flags = "-00"
	}
	return "00-" + IDOf(task, t).String() + "-" + SpanOf(task, a).String() + flags
}

// State returns the tracestate that belongs to Parent: the tracestate of the caller's trace.
func State(t *flow.Traced) string {
	if t == nil || t.Link {
		return ""
	}
	return t.State
}
