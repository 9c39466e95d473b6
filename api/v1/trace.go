package v1

import (
	"context"
	"net/http"
	"strconv"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

func (h *historyHandler) addTraceRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "get-trace", method: http.MethodGet, path: "/v1/tasks/{task}/trace", tag: "history",
		summary: "Read a task as a trace",
		text: "The JSON of OpenTelemetry's protocol, which a collector takes as it is. It is " +
			"told from the history, of any task at any time, and the ids are always the same. " +
			"At most 1,000 spans: of a step with more than 100 units the failed and the 20 " +
			"slowest attempts are told, and of a task with too many spans those that failed, " +
			"steps, and what took long. What goes on ends now."}, h.getTrace)
}

func (h *historyHandler) getTrace(ctx context.Context, in *TaskPath) (*bodyResponse[wire.Trace], error) {
	row, err := h.store.Task(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	plan, err := h.reader.Plan(ctx, row.VersionID)
	if err != nil {
		return nil, err
	}
	t := trace.New(in.Task, plan)
	if err := h.readJournal(ctx, in.Task, t.Add); err != nil {
		return nil, err
	}
	spans := t.Spans(h.engine.Now().UnixMilli())
	list := make([]wire.Span, len(spans))
	for i := range spans {
		list[i] = toSpan(in.Task, orElse(row.FlowSlug, row.FlowID), row.VersionNumber, &spans[i])
	}
	return &bodyResponse[wire.Trace]{wire.Trace{ResourceSpans: []wire.ResourceSpans{{
		Resource:   wire.SpanResource{Attributes: []wire.SpanAttribute{textOf("service.name", "troupe")}},
		ScopeSpans: []wire.ScopeSpans{{Scope: wire.SpanScope{Name: "troupe"}, Spans: list}},
	}}}}, nil
}

// readJournal reads a whole journal in parts.
func (h *historyHandler) readJournal(ctx context.Context, task string, event func(*flow.Event)) error {
	_, err := h.readJournalFrom(ctx, task, 0, event)
	return err
}

func toSpan(task, flowName string, version int, x *trace.Span) wire.Span {
	span := wire.Span{TraceID: x.Trace.String(), SpanID: x.ID.String(), Name: x.Name, Kind: int(x.Kind),
		Start: toNanos(x.Start), End: toNanos(x.End), Attributes: spanAttributes(task, flowName, version, x)}
	if x.Parent != (trace.SpanID{}) {
		span.ParentSpanID = x.Parent.String()
	}
	if x.Link != (trace.Link{}) {
		span.Links = []wire.SpanLink{{TraceID: x.Link.Trace.String(), SpanID: x.Link.Span.String(), TraceState: x.Link.State}}
	}
	if x.Failed {
		span.Status = wire.SpanStatus{Code: 2, Message: x.Message()}
	}
	return span
}

func toNanos(ms int64) string { return strconv.FormatInt(ms, 10) + "000000" }

func spanAttributes(task, flowName string, version int, x *trace.Span) (all []wire.SpanAttribute) {
	for _, a := range x.Attributes(task, flowName, version) {
		switch v := a.Value.(type) {
		case string:
			all = append(all, textOf(a.Key, v))
		case int:
			all = append(all, wire.SpanAttribute{Key: a.Key, Value: wire.SpanAttrValue{Number: strconv.Itoa(v)}})
		case bool:
			all = append(all, wire.SpanAttribute{Key: a.Key, Value: wire.SpanAttrValue{True: v}})
		}
	}
	return all
}

func textOf(key, value string) wire.SpanAttribute {
	return wire.SpanAttribute{Key: key, Value: wire.SpanAttrValue{Text: value}}
}
