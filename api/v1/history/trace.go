package history

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

func (h *Handler) addTraceRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "get-trace", Method: http.MethodGet, Path: "/v1/tasks/{task}/trace", Tag: "history",
		Summary: "Get a task's trace",
		Text: "The JSON of OpenTelemetry's protocol, which collectors accept unchanged. It is " +
			"derived from the history, for any task at any time, and the IDs are always the same. " +
			"At most 1,000 spans: a step with more than 100 units has its failed and its 20 " +
			"slowest attempts. A task with too many spans has those that failed, the steps, and " +
			"the longest ones. Running spans end now."}, h.getTrace)
}

func (h *Handler) getTrace(ctx context.Context, in *catalog.TaskPath) (*route.Response[wire.Trace], error) {
	row, err := h.Store.Task(ctx, in.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	plan, err := h.Reader.Plan(ctx, row.VersionID)
	if err != nil {
		return nil, err
	}
	t := trace.New(in.Task, plan)
	if err := h.readJournal(ctx, in.Task, t.Add); err != nil {
		return nil, err
	}
	spans := t.Spans(h.Engine.Now().UnixMilli())
	list := make([]wire.Span, len(spans))
	for i := range spans {
		list[i] = toSpan(in.Task, cmp.Or(row.FlowSlug, row.FlowID), row.VersionNumber, &spans[i])
	}
	return &route.Response[wire.Trace]{Body: wire.Trace{ResourceSpans: []wire.ResourceSpans{{
		Resource:   wire.SpanResource{Attributes: []wire.SpanAttribute{textOf("service.name", "troupe")}},
		ScopeSpans: []wire.ScopeSpans{{Scope: wire.SpanScope{Name: "troupe"}, Spans: list}},
	}}}}, nil
}

// readJournal reads a whole journal in parts.
func (h *Handler) readJournal(ctx context.Context, task string, event func(*flow.Event)) error {
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
