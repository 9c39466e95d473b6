package wire

import (
	"strings"
	"time"
)

// The files v1*.go hold the types of /v1. Values of users (params, shared, inputs, outputs) are
// json.RawMessage, so that large numbers and the order of keys survive.

// timeFormat is RFC 3339 with milliseconds, always in UTC, so that times of equal length sort as
// texts.
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

// Page is a part of a list. Next is the cursor of the part after it, "" at the end.
type Page[T any] struct {
	Items []T    `json:"items" doc:"never null"`
	Next  string `json:"next,omitempty" doc:"cursor of the next page; absent at the end"`

	Searched Time `json:"searched_to,omitzero" doc:"of tasks and approvals that were searched for: there may be more behind this time, which nobody has looked for yet; next goes on from there"`
}

// Info describes the server.
type Info struct {
	Version string `json:"version" doc:"of Troupe" example:"1.0.0"`
	Store   string `json:"store" doc:"where everything is kept" example:"sqlite"`
	Member  string `json:"member" doc:"name of the member that answers"`
	Now     Time   `json:"now" doc:"the store's time"`

	TraceURL string `json:"trace_url,omitempty" doc:"where people see the trace of a task: a URL with {trace_id} and {task} in it" example:"https://tempo.example/trace/{trace_id}"`
	LogURL   string `json:"log_url,omitempty" doc:"where people see the log lines of a task, likewise"`
}

// Problem is every answer that is no success: application/problem+json (RFC 9457) with the fault,
// its place, and advice.
type Problem struct {
	Title  string `json:"title" doc:"the status in words"`
	Status int    `json:"status" doc:"the HTTP status"`
	Detail string `json:"detail,omitempty" doc:"all of it in one sentence"`

	Kind  string `json:"kind" enum:"invalid,not_found,conflict,limit,busy,denied,internal" doc:"what a program may decide by"`
	What  string `json:"what" doc:"what is wrong"`
	Where string `json:"where,omitempty" doc:"the part of the request it is about" example:"query.limit"`
	Hint  string `json:"hint,omitempty" doc:"what to do about it"`

	Faults   []Fault             `json:"faults,omitempty" doc:"when several parts of the request are wrong: each of them; when the inputs of a task are not what its flow declares: every one that does not fit"`
	Problems []DefinitionProblem `json:"problems,omitempty" doc:"what is wrong with a definition"`
	Request  string              `json:"request,omitempty" doc:"id of the request in the server's log"`
}

// Error returns the fault, its place, and advice.
func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}

// Explain builds the sentence of Detail from the parts.
func (p *Problem) Explain() {
	var b strings.Builder
	if p.Where != "" {
		b.WriteString(p.Where + ": ")
	}
	b.WriteString(p.What)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	p.Detail = b.String()
}

// Fault is one of several faults of a request.
type Fault struct {
	What  string `json:"what"`
	Where string `json:"where,omitempty"`
	Hint  string `json:"hint,omitempty"`
}
