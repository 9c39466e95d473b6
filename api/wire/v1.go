package wire

import (
	"strings"
	"time"
)

// The files v1*.go have the types of /v1. Values of users (params, shared, inputs, outputs) are
// json.RawMessage, so that large numbers and the order of keys are preserved.

// timeFormat is RFC 3339 with milliseconds, always in UTC, so that times sort as texts.
const timeFormat = "2006-01-02T15:04:05.000Z"

// Time is a point in time, in milliseconds.
type Time struct{ time.Time }

// Millis converts Unix milliseconds to a Time; 0 gives the zero Time.
func Millis(ms int64) Time {
	if ms == 0 {
		return Time{}
	}
	return Time{time.UnixMilli(ms).UTC()}
}

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// AppendText implements encoding.TextAppender.
func (t Time) AppendText(b []byte) ([]byte, error) { return t.UTC().AppendFormat(b, timeFormat), nil }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"`+timeFormat+`"`), nil
}

// Page is a part of a list. Next is the cursor of the next part; "" at the end.
type Page[T any] struct {
	Items []T    `json:"items" doc:"Items of the page; never null."`
	Next  string `json:"next,omitempty" doc:"Cursor of the next page; absent at the end."`

	SearchedUntil Time `json:"searched_until,omitzero" doc:"For searches of tasks and approvals: everything newer than this time was searched. There may be more matches before it; continue with next."`
}

// ServerInfo describes the server.
type ServerInfo struct {
	Version   string `json:"version" doc:"Version of Troupe." example:"1.0.0"`
	Store     string `json:"store" doc:"Kind of the store." example:"sqlite"`
	Member    string `json:"member" doc:"Name of the member that answers."`
	StoreTime Time   `json:"store_time" doc:"Current time of the store."`

	TraceURL string `json:"trace_url,omitempty" doc:"URL of the page with a task's trace; it contains {trace_id} and {task}." example:"https://tempo.example/trace/{trace_id}"`
	LogURL   string `json:"log_url,omitempty" doc:"URL of the page with a task's log lines; it contains {trace_id} and {task}."`
}

// Problem is an error answer: application/problem+json (RFC 9457) with the fault, its place, and
// advice.
type Problem struct {
	Type   string `json:"type" doc:"URI of the kind of error, such as urn:troupe:error:conflict; it ends in code."`
	Title  string `json:"title" doc:"Text of the HTTP status."`
	Status int    `json:"status" doc:"HTTP status."`
	Detail string `json:"detail,omitempty" doc:"Field, message and hint in one sentence."`

	Code    string `json:"code" enum:"invalid,not_found,conflict,limit,busy,denied,internal" doc:"Kind of the error, for programs."`
	Message string `json:"message" doc:"Description of the error."`
	Field   string `json:"field,omitempty" doc:"Part of the request with the error: a path or query parameter, a header, or a JSON path in the body." example:"query.limit"`
	Hint    string `json:"hint,omitempty" doc:"Advice on how to resolve the error."`

	Errors    []FieldError        `json:"errors,omitempty" doc:"If several parts of the request are wrong: one entry for each. If the inputs of a task do not fit the declaration of its flow: one entry for each of them."`
	Problems  []DefinitionProblem `json:"problems,omitempty" doc:"Problems of the definition."`
	RequestID string              `json:"request_id,omitempty" doc:"ID of the request in the server's log."`
}

// Error returns the fault, its place, and advice.
func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}

// Explain sets Type and Detail from the other fields.
func (p *Problem) Explain() {
	p.Type = ProblemType(p.Code)
	var b strings.Builder
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	p.Detail = b.String()
}

// ProblemType returns the URI for a code.
func ProblemType(code string) string { return "urn:troupe:error:" + code }

// FieldError is one of several faults in a request.
type FieldError struct {
	Message string `json:"message" doc:"Description of the error."`
	Field   string `json:"field,omitempty" doc:"Part of the request with the error."`
	Hint    string `json:"hint,omitempty" doc:"Advice on how to resolve the error."`
}
