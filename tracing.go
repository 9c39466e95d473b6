package troupe

import (
	"context"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/actors/spans"
	"github.com/troupe-engine/troupe/flow/trace"
)

// Span is something that took its time in a task, with the ids of the trace that it belongs to.
type Span = spans.Span

// Spans takes spans in batches, one after the other, a second after they have ended. Nothing waits
// for it; those of a batch that it refuses are dropped and counted.
type Spans = spans.Sink

// startSpans has them told, if somebody takes them.
func (e *Engine) startSpans() {
	if e.cfg.Spans != nil {
		e.spans = spans.Start(spans.Options{Store: e.newest, Sink: e.cfg.Spans, Logger: e.cfg.Logger})
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

// closeSpans tells the last ones. A collector that is away holds nobody up for long.
func (e *Engine) closeSpans() {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace/2)
	defer cancel()
	e.spans.Close(ctx)
}
