package definition

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/duration"
	"github.com/troupe-engine/troupe/flow/expr"
)

// DagNode holds the fields of a node that only apply in dag mode.
type DagNode struct {
	DependsOn []string `json:"depends_on,omitempty"` // keys of nodes that must end first
	// "always": run also after dependencies that failed or were skipped
	RunOn string `json:"run_on,omitempty"`
	// push, queue, or direct: completed through the API without a handler
	Route string  `json:"route,omitempty"`
	Each  *EachOf `json:"each,omitempty"` // makes it a fan-out
	When  *When   `json:"when,omitempty"` // condition under which it runs
	// effect of an unmet condition: dependents are skipped too, or run without it, or the node
	// fails
	SkipMode  string `json:"skip_mode,omitempty"`
	WhenUnmet string `json:"whenUnmet,omitempty"` // skip_mode in the words of pgflow
	// fail, skip or skip-cascade, after the last attempt
	Exhausted  string `json:"on_exhausted,omitempty"`
	InputShape string `json:"input_shape,omitempty"` // form of its handler's input

	// name in addition to the key, such as extract-orders: used in merged inputs and for display
	Name string `json:"name,omitempty"`
	// type of its handler's output, such as int, [text] or {type: object, fields: {id: int}}; an
	// attempt with another output fails
	OutputType json.RawMessage `json:"output_type,omitempty"`

	Input  json.RawMessage    `json:"input,omitempty"`  // static fields of a merged input
	Inputs map[string]Binding `json:"inputs,omitempty"` // fields of the input

	// timer: how long it waits; params.delay_ms in another notation
	Delay Duration `json:"delay,omitzero"`
	// wait_event, approval: the signal to wait for; params in another notation
	Signal *SignalOf `json:"signal,omitempty"`

	StartDelay Duration `json:"start_delay,omitzero"` // delay of the start of its units
	// how long a queue job, or one with exec.report: object_store, may wait for a worker
	StartTimeout Duration `json:"start_timeout,omitzero"`
	// how long a worker may be silent, for a queue or exec.report: object_store
	HeartbeatTimeout Duration `json:"heartbeat_timeout,omitzero"`
}

// SignalOf is the signal that a node waits for.
type SignalOf struct {
	Key     string   `json:"key,omitempty"`    // reference that a signal sets, such as $shared.paid
	Timeout Duration `json:"timeout,omitzero"` // how long to wait
}

// Handler defines what carries out a job.
type Handler struct {
	Service  string `json:"service,omitempty"`   // service whose workers carry it out
	ExecType string `json:"exec_type,omitempty"` // how its jobs are delivered
	// exec_type in other words, or direct: answered through the API
	Route  string       `json:"route,omitempty"`
	Func   string       `json:"func,omitempty"`   // name of the local function
	Script *flow.Script `json:"script,omitempty"` // program of a local_script
}

// Given reports whether the definition names a handler.
func (h Handler) Given() bool {
	return h.Service != "" || h.Func != "" || h.Script != nil || h.Route != ""
}

// EachOf gives a node many units. Items is a reference to an array, or a handler that returns one.
// Count is a number or a reference to one. With both, each item gets that number of units.
type EachOf struct {
	// reference to a list, or a handler that returns one
	Items Source `json:"items,omitzero"`
	// number of units, or units per item: a number or a reference to one
	Count       Source `json:"count,omitzero"`
	Concurrency int    `json:"concurrency,omitempty"` // maximum number of units in flight; 0 = all
	OnError     string `json:"on_error,omitempty"`    // effect of a failed unit
}

// When is the condition of a node. The input must contain the pattern If and must not contain
// IfNot; Expr must be true; Cond is a handler that returns true to skip the node.
type When struct {
	// pattern that the input must contain, as with @> of PostgreSQL
	If    json.RawMessage `json:"if,omitempty"`
	IfNot json.RawMessage `json:"if_not,omitempty"` // pattern that the input must not contain
	Expr  string          `json:"expr,omitempty"`   // CEL expression that must be true
	Cond  *Handler        `json:"cond,omitempty"`   // handler that returns true to skip the node
}

// Binding is one field of an input: a constant or a reference.
type Binding struct {
	Const json.RawMessage `json:"const,omitempty"` // constant value
	// reference such as $run.customer or $deps.fetch.rows
	Ref string `json:"ref,omitempty"`
}

// RetrySpec defines how often and with which delays units are retried.
type RetrySpec struct {
	// total number of tries, including the first
	MaxAttempts int      `json:"max_attempts,omitempty"`
	Delay       Duration `json:"delay,omitzero"` // delay before the second try
	// exponential: each delay is twice the previous one
	Backoff  string   `json:"backoff,omitempty"`
	MaxDelay Duration `json:"max_delay,omitzero"` // maximum delay
	Jitter   float64  `json:"jitter,omitempty"`   // 0 to 1: random part of the delay

	noAttempts bool // max_attempts was written as 0
}

// NoAttempts reports whether max_attempts was written as 0.
func (r *RetrySpec) NoAttempts() bool { return r.noAttempts }

// Defaults apply to nodes that do not set these fields.
type Defaults struct {
	// how often and with which delays units are retried
	Retry    *RetrySpec `json:"retry,omitempty"`
	Timeout  Duration   `json:"timeout,omitzero"`    // of an attempt
	ExecType string     `json:"exec_type,omitempty"` // how jobs are delivered
	Route    string     `json:"route,omitempty"`     // how jobs are delivered
	SkipMode string     `json:"skip_mode,omitempty"` // effect of an unmet condition
}

// Duration is a duration in a definition: a text such as "1m30s", or, in profiles that allow it, a
// number of seconds.
type Duration struct {
	MS      int64
	seconds bool          // it was written as a number
	none    bool          // it was written with the value zero
	exact   time.Duration // set by DurationOf if finer than a millisecond
}

// DurationOf returns a duration in the form of a definition. It keeps a duration finer than a
// millisecond, so that reading the definition reports the error.
func DurationOf(d time.Duration) Duration {
	written := Duration{MS: d.Milliseconds()}
	if d%time.Millisecond != 0 {
		written.exact = d
	}
	return written
}

// IsZero reports whether nothing was written.
func (d Duration) IsZero() bool { return d == Duration{} }

// InSeconds reports whether the duration was written as a number.
func (d Duration) InSeconds() bool { return d.seconds }

// MarshalJSON encodes the duration as written.
func (d Duration) MarshalJSON() ([]byte, error) {
	if d.exact != 0 {
		return json.Marshal(d.exact.String())
	}
	if d.seconds {
		return strconv.AppendFloat(nil, float64(d.MS)/1000, 'f', -1, 64), nil
	}
	return json.Marshal((time.Duration(d.MS) * time.Millisecond).String())
}

func (d *Duration) decodeValue(from decoder, v textValue, at *Place) {
	switch v.kind() {
	case expr.KindNumber:
		seconds, _ := expr.Number(v.rawJSON())
		*d = Duration{MS: int64(math.Round(min(max(seconds, 0)*1000, 1<<62))), seconds: true}
		switch {
		case !(seconds >= 0) || d.MS > flow.MaxDelay:
			from.addProblem(SeverityError, at, v.position(), "is no duration: %.40s seconds", v.rawJSON())
		case float64(d.MS) != seconds*1000 && math.Abs(float64(d.MS)-seconds*1000) > 1e-6:
			from.addProblem(SeverityError, at, v.position(),
				"%.40s seconds are finer than a millisecond, the smallest part that is kept", v.rawJSON())
		}
	case expr.KindString:
		text, _ := expr.String(v.rawJSON())
		parsed, err := duration.Parse(text)
		*d = Duration{MS: parsed.Milliseconds(), none: parsed == 0}
		switch {
		case err != nil:
			from.addProblem(SeverityError, at, v.position(), "%s", err)
		case d.MS > flow.MaxDelay:
			from.addProblem(SeverityError, at, v.position(), "%.40q is longer than any delay may be", text)
		}
	default:
		from.addProblem(SeverityError, at, v.position(), "must be a duration such as 30s, is %s", v.kind())
	}
}

// Source is the source of a list or a number.
type Source struct {
	Ref     string  // reference
	Number  int     // fixed number, if Literal
	Literal bool    //
	Handler Handler // handler that returns it
}

// IsZero reports whether nothing was written.
func (s Source) IsZero() bool { return s.Ref == "" && !s.Literal && !s.Handler.Given() }

// MarshalJSON encodes the source as written.
func (s Source) MarshalJSON() ([]byte, error) {
	switch {
	case s.Literal:
		return strconv.AppendInt(nil, int64(s.Number), 10), nil
	case s.Ref != "":
		return json.Marshal(s.Ref)
	}
	return json.Marshal(s.Handler)
}

func (s *Source) decodeValue(from decoder, v textValue, at *Place) {
	switch v.kind() {
	case expr.KindString:
		s.Ref, _ = expr.String(v.rawJSON())
		if s.Ref == "" {
			from.addProblem(SeverityError, at, v.position(), "is empty: write a reference such as $deps.fetch.rows")
		}
	case expr.KindNumber:
		n, err := strconv.Atoi(string(v.rawJSON()))
		if err != nil {
			from.addProblem(SeverityError, at, v.position(), "must be a whole number, is %.40s", v.rawJSON())
			return
		}
		s.Number, s.Literal = n, true
	case expr.KindObject:
		from.decodeHandler(v, &s.Handler, at)
	default:
		from.addProblem(SeverityError, at, v.position(),
			"must be a reference such as $deps.fetch.rows or a handler such as {service: rows}, is %s",
			v.kind())
	}
}

// Inner is a nested flow: its definition, or the name of a published flow.
type Inner struct {
	Name string
	*Definition
	elsewhere bool
}

// Elsewhere reports whether the named flow was not found although it may exist in another place.
func (f Inner) Elsewhere() bool { return f.elsewhere }

// MarshalJSON encodes the nested flow as written.
func (f Inner) MarshalJSON() ([]byte, error) {
	if f.Definition == nil {
		return json.Marshal(f.Name)
	}
	return json.Marshal(f.Definition)
}

func (f *Inner) decodeValue(from decoder, v textValue, at *Place) {
	if v.kind() == expr.KindString {
		f.Name, _ = expr.String(v.rawJSON())
		return
	}
	f.Definition = &Definition{}
	from.decodeObject(v, reflect.ValueOf(f.Definition).Elem(), at)
}

// Empty reports whether nothing was written.
func (p Prep) Empty() bool {
	return !p.Given() && p.Expr == "" && p.InputMap == nil && p.InputKey == ""
}
