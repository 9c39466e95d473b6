package serve

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// spanExporter sends spans to a collector, by OpenTelemetry's protocol over HTTP.
type spanExporter struct {
	client   otlptrace.Client
	resource *resourcepb.Resource
}

// configureTracing configures tracing from OpenTelemetry's own variables.
func (f *memberFlags) configureTracing(cfg *troupe.Config) (err error) {
	cfg.TraceLinks = f.TraceMode == "link"
	if !isExporting() {
		return nil
	}
	if cfg.SpanRatio, cfg.SpanRatioAlone, err = parseSampler(os.Getenv("OTEL_TRACES_SAMPLER"),
		os.Getenv("OTEL_TRACES_SAMPLER_ARG")); err != nil {
		return err
	}
	const own, general = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
	if p := cmp.Or(os.Getenv(own), os.Getenv(general), "http/protobuf"); p != "http/protobuf" {
		return console.NewUsageError("the protocol of the collector is %s, but only http/protobuf "+
			"is supported: set %s to http/protobuf, and use the matching port, usually 4318", p, own)
	}
	c := &spanExporter{client: otlptracehttp.NewClient(), resource: buildResource(cfg.Name)}
	if err := c.client.Start(context.Background()); err != nil {
		return fmt.Errorf("exporting spans: %w", err)
	}
	cfg.Spans = c
	return nil
}

// isExporting reports whether a collector is configured.
func isExporting() bool {
	if off, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); off || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// parseSampler returns the ratio of traces to export, as in troupe.Config. alone reports whether
// the ratio also applies to traces that callers have begun.
func parseSampler(name, arg string) (ratio float64, alone bool, err error) {
	name, parent := strings.CutPrefix(name, "parentbased_")
	switch name {
	case "":
		return 0, false, nil
	case "always_on":
		return 1, !parent, nil
	case "always_off":
		return -1, !parent, nil
	case "traceidratio":
		if ratio, err = strconv.ParseFloat(arg, 64); arg != "" && (err != nil || ratio < 0 || ratio > 1) {
			return 0, false, console.NewUsageError("OTEL_TRACES_SAMPLER_ARG is %q: use a number from 0 to 1", arg)
		}
		switch {
		case arg == "":
			ratio = 1
		case ratio == 0:
			ratio = -1
		}
		return ratio, !parent, nil
	}
	return 0, false, console.NewUsageError("OTEL_TRACES_SAMPLER is %q: use always_on, always_off or "+
		"traceidratio, optionally with the prefix parentbased_", name)
}

// buildResource returns the resource of exported spans. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES have precedence over the defaults.
func buildResource(member string) *resourcepb.Resource {
	ours := []attribute.KeyValue{attribute.String("service.name", "troupe"), attribute.String("service.version", troupe.Version())}
	if member != "" {
		ours = append(ours, attribute.String("service.instance.id", member))
	}
	all, err := resource.Merge(resource.NewSchemaless(ours...), resource.Environment())
	if err != nil {
		all = resource.NewSchemaless(ours...)
	}
	r := &resourcepb.Resource{}
	for _, a := range all.Attributes() {
		r.Attributes = append(r.Attributes, &commonpb.KeyValue{Key: string(a.Key), Value: valueOf(a.Value.String())})
	}
	return r
}

// Tell sends a batch of spans to the collector.
func (c *spanExporter) Tell(ctx context.Context, spans []troupe.Span) error {
	list := make([]*tracepb.Span, len(spans))
	for i := range spans {
		list[i] = spanOf(&spans[i])
	}
	return c.client.UploadTraces(ctx, []*tracepb.ResourceSpans{{
		Resource:   c.resource,
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "troupe"}, Spans: list}},
	}})
}

func spanOf(s *troupe.Span) *tracepb.Span {
	span := &tracepb.Span{TraceId: s.Trace[:], SpanId: s.ID[:], Name: strings.ToValidUTF8(s.Name, "?"), Kind: tracepb.Span_SpanKind(s.Kind),
		StartTimeUnixNano: uint64(s.Start) * 1e6, EndTimeUnixNano: uint64(s.End) * 1e6}
	if s.Parent != (trace.SpanID{}) {
		span.ParentSpanId = s.Parent[:]
	}
	if l := &s.Link; *l != (trace.Link{}) {
		span.Links = []*tracepb.Span_Link{{TraceId: l.Trace[:], SpanId: l.Span[:], TraceState: l.State}}
	}
	if s.Failed {
		span.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: strings.ToValidUTF8(s.Message(), "?")}
	}
	for _, a := range s.Attributes(s.Task, s.Flow, s.Version) {
		span.Attributes = append(span.Attributes, &commonpb.KeyValue{Key: a.Key, Value: valueOf(a.Value)})
	}
	return span
}

func valueOf(v any) *commonpb.AnyValue {
	switch v := v.(type) {
	case int:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(v)}}
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}
	default:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: strings.ToValidUTF8(fmt.Sprint(v), "?")}}
	}
}
