package troupe

import (
	"context"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/member/spans"
)

// Span is a timed operation of a task, with the ids of its trace.
type Span = spans.Span

// Spans receives spans in batches, one batch after the other, a second after the spans have ended.
// No task waits for it. Spans of a rejected batch are dropped and counted.
type Spans = spans.Sink

// startSpans starts sending spans, if the Config has a receiver.
func (e *Engine) startSpans() {
	if e.cfg.Spans != nil {
		e.spans = spans.Start(spans.Options{Store: e.stores.Newest, Sink: e.cfg.Spans, Logger: e.cfg.Logger})
	}
}

func (e *Engine) tracingConfig() actors.Tracing {
	t := actors.Tracing{Sampling: trace.Sampling{Alone: e.cfg.SpanRatioAlone, Link: e.cfg.TraceLinks}}
	switch ratio := e.cfg.SpanRatio; {
	case ratio < 0:
		t.Sampling.Skip = 1
	case ratio > 0:
		t.Sampling.Skip = 1 - min(ratio, 1)
	}
	if e.spans != nil {
		t.Teller = e.spans
	}
	return t
}

// closeSpans sends the last spans. An unavailable collector delays the close only briefly.
func (e *Engine) closeSpans() {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace/2)
	defer cancel()
	e.spans.Close(ctx)
}
