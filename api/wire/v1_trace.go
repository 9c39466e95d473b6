package wire

// Trace is a task as spans, in the JSON of OpenTelemetry's protocol. It can be sent unchanged to a
// collector, as the body of POST /v1/traces.
type Trace struct {
	ResourceSpans []ResourceSpans `json:"resourceSpans"`
}

// ResourceSpans are the spans of one service.
type ResourceSpans struct {
	Resource   SpanResource `json:"resource"`
	ScopeSpans []ScopeSpans `json:"scopeSpans"`
}

// SpanResource describes the service that the spans belong to.
type SpanResource struct {
	Attributes []SpanAttribute `json:"attributes"`
}

// ScopeSpans holds the spans that one library reports.
type ScopeSpans struct {
	Scope SpanScope `json:"scope"`
	Spans []Span    `json:"spans"`
}

// SpanScope names the library that reports spans.
type SpanScope struct {
	Name string `json:"name"`
}

// Span is an operation with a start and an end.
type Span struct {
	TraceID      string          `json:"traceId" doc:"16 bytes, in hexadecimal."`
	SpanID       string          `json:"spanId" doc:"8 bytes, in hexadecimal."`
	ParentSpanID string          `json:"parentSpanId,omitempty"`
	Name         string          `json:"name" example:"attempt pay"`
	Kind         int             `json:"kind" enum:"1,3,4" doc:"1 internal, 3 client (a call, or a job of an attached worker), 4 producer (a job in a queue)."`
	Start        string          `json:"startTimeUnixNano" example:"1763918400000000000"`
	End          string          `json:"endTimeUnixNano" doc:"End of the span; now if it is running."`
	Attributes   []SpanAttribute `json:"attributes"`
	Links        []SpanLink      `json:"links,omitempty"`
	Status       SpanStatus      `json:"status"`
}

// SpanLink points to a span of another trace. This is the span of the caller that started the task,
// if the task has its own trace.
type SpanLink struct {
	TraceID    string `json:"traceId"`
	SpanID     string `json:"spanId"`
	TraceState string `json:"traceState,omitempty"`
}

// SpanStatus reports whether a span has failed.
type SpanStatus struct {
	Code    int    `json:"code,omitempty" enum:"0,1,2" doc:"2 = the span failed."`
	Message string `json:"message,omitempty" doc:"Error, its first 200 bytes."`
}

// SpanAttribute is a name and a value.
type SpanAttribute struct {
	Key   string        `json:"key"`
	Value SpanAttrValue `json:"value"`
}

// SpanAttrValue is a text, a number or a boolean.
type SpanAttrValue struct {
	Text   string `json:"stringValue,omitempty"`
	Number string `json:"intValue,omitempty" doc:"Number, as a text."`
	True   bool   `json:"boolValue,omitempty"`
}
