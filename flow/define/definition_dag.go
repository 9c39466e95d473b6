package define

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

// DagNode are the fields of a node that have a meaning in dag mode alone.
type DagNode struct {
	DependsOn  []string `json:"depends_on,omitempty"`   // keys of nodes that have to end first
	RunOn      string   `json:"run_on,omitempty"`       // "always": also after dependencies that failed or were skipped
	Route      string   `json:"route,omitempty"`        // push, queue, or direct: finished through the API, by nobody's handler
	Each       *EachOf  `json:"each,omitempty"`         // makes it a fan-out
	When       *When    `json:"when,omitempty"`         // decides whether it runs
	SkipMode   string   `json:"skip_mode,omitempty"`    // what an unmet condition means: dependents are skipped, too, run without it, or the node fails
	WhenUnmet  string   `json:"whenUnmet,omitempty"`    // skip_mode in pgflow's words
	Exhausted  string   `json:"on_exhausted,omitempty"` // fail, skip, skip-cascade: after the last attempt
	InputShape string   `json:"input_shape,omitempty"`  // what its handler gets

	Name       string          `json:"name,omitempty"`        // what the node is called where its key will not do, such as extract-orders: in merged inputs, and by whoever shows it
	OutputType json.RawMessage `json:"output_type,omitempty"` // what its handler has to return: a type such as int, [text] or {type: object, fields: {id: int}}; an attempt with anything else has failed

	Input  json.RawMessage    `json:"input,omitempty"`  // static fields of a merged input
	Inputs map[string]Binding `json:"inputs,omitempty"` // the input, field by field

	Delay  Duration  `json:"delay,omitzero"`   // timer: how long; another way to write params.delay_ms
	Signal *SignalOf `json:"signal,omitempty"` // wait_event, approval: what for; another way to write params

	StartDelay       Duration `json:"start_delay,omitzero"`       // its units wait so long
	StartTimeout     Duration `json:"start_timeout,omitzero"`     // how long a queued job may wait for a worker, or one of exec.report: object_store
	HeartbeatTimeout Duration `json:"heartbeat_timeout,omitzero"` // how long a worker may be silent, of a queue or of exec.report: object_store
}

// SignalOf says what a node waits for.
type SignalOf struct {
	Key     string   `json:"key,omitempty"`    // the reference that a signal sets, such as $shared.paid
	Timeout Duration `json:"timeout,omitzero"` // how long
}

// Handler is who carries out a job.
type Handler struct {
	Service  string       `json:"service,omitempty"`   // whose workers carry it out
	ExecType string       `json:"exec_type,omitempty"` // how its jobs travel
	Route    string       `json:"route,omitempty"`     // the same, or direct: somebody answers through the API
	Func     string       `json:"func,omitempty"`      // name of the local function
	Script   *flow.Script `json:"script,omitempty"`    // program of a local_script
}

// Given reports whether the definition names a handler.
func (h Handler) Given() bool {
	return h.Service != "" || h.Func != "" || h.Script != nil || h.Route != ""
}

// EachOf makes a node one of many units. Items is a reference to an array or a handler that returns
// one; Count a number or a reference to one. With both there are that many units for each item.
type EachOf struct {
	Items       Source `json:"items,omitzero"`        // a reference to a list, or a handler that returns one
	Count       Source `json:"count,omitzero"`        // how many units, or how many for each item: a number or a reference to one
	Concurrency int    `json:"concurrency,omitempty"` // units in flight at once; 0 = all
	OnError     string `json:"on_error,omitempty"`    // what a failed unit means
}

// When decides whether a node runs. Of the patterns, If must be contained in the node's input and
// IfNot must not; Expr must be true; Cond is a handler that returns true if the node is to be
// skipped.
type When struct {
	If    json.RawMessage `json:"if,omitempty"`     // pattern that must be contained in the input, as by @> of PostgreSQL
	IfNot json.RawMessage `json:"if_not,omitempty"` // pattern that must not be
	Expr  string          `json:"expr,omitempty"`   // CEL that must be true
	Cond  *Handler        `json:"cond,omitempty"`   // handler that returns true if the node is to be skipped
}

// Binding is one field of an input: exactly one of a constant and a reference.
type Binding struct {
	Const json.RawMessage `json:"const,omitempty"` // the value
	Ref   string          `json:"ref,omitempty"`   // what to take it from, such as $run.customer or $deps.fetch.rows
}

// RetrySpec says how often and how far apart units are tried.
type RetrySpec struct {
	MaxAttempts int      `json:"max_attempts,omitempty"` // all tries, the first one included
	Delay       Duration `json:"delay,omitzero"`         // before the second try
	Backoff     string   `json:"backoff,omitempty"`      // exponential: each wait is twice the one before
	MaxDelay    Duration `json:"max_delay,omitzero"`     // longest wait
	Jitter      float64  `json:"jitter,omitempty"`       // 0 to 1: how much of the delay is left to chance

	noAttempts bool // max_attempts was written, as 0
}

// NoAttempts says that max_attempts was written, as 0.
func (r *RetrySpec) NoAttempts() bool { return r.noAttempts }

// Defaults are what nodes take that say nothing themselves.
type Defaults struct {
	Retry    *RetrySpec `json:"retry,omitempty"`     // how often and how far apart units are tried
	Timeout  Duration   `json:"timeout,omitzero"`    // of an attempt
	ExecType string     `json:"exec_type,omitempty"` // how its jobs travel
	Route    string     `json:"route,omitempty"`     // how jobs travel
	SkipMode string     `json:"skip_mode,omitempty"` // what an unmet condition means
}

// Duration is a time in a definition: a text such as "1m30s", or, in the profiles that have it so,
// a number of seconds.
type Duration struct {
	MS      int64
	seconds bool          // it was written as a number
	none    bool          // it was written, as no time at all
	exact   time.Duration // by a builder, finer than what is kept
}

// IsZero says that nothing was written.
func (d Duration) IsZero() bool { return d == Duration{} }

// InSeconds says that it was written as a number.
func (d Duration) InSeconds() bool { return d.seconds }

// MarshalJSON writes the text.
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
			from.addProblem(SeverityError, at, v.position(), "%.40s seconds are finer than a millisecond, the smallest part that is kept", v.rawJSON())
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

// Source is where a list or a number comes from.
type Source struct {
	Ref     string  // a reference
	Number  int     // itself, when Literal
	Literal bool    //
	Handler Handler // who makes it
}

// IsZero says that nothing was written.
func (s Source) IsZero() bool { return s.Ref == "" && !s.Literal && !s.Handler.Given() }

// MarshalJSON writes it as it is read.
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
		from.addProblem(SeverityError, at, v.position(), "must be a reference such as $deps.fetch.rows or a handler such as {service: rows}, is %s", v.kind())
	}
}

// Inner is a flow inside a node: written there, or the name of a published one.
type Inner struct {
	Name string
	*Definition
	elsewhere bool
}

// Elsewhere says that the named flow was not found where it was looked for, which is not
// everywhere.
func (f Inner) Elsewhere() bool { return f.elsewhere }

// MarshalJSON writes it as it is read.
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

// Empty says that nothing was written.
func (p Prep) Empty() bool {
	return !p.Given() && p.Expr == "" && p.InputMap == nil && p.InputKey == ""
}
