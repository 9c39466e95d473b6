package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Settings define the effect of deliveries to a hook. With Signal they signal a task, otherwise
// they start one.
type Settings struct {
	Scheme string `json:"scheme,omitempty"` // signature scheme; "" for Standard
	// Header is the header of the signature, if it is not the one of the scheme.
	Header string `json:"header,omitempty"`
	// When is an expression that selects deliveries; all others are ignored. "" selects all.
	When    string `json:"when,omitempty"`
	Flow    string `json:"flow,omitempty"`    // slug or id
	Version int    `json:"version,omitempty"` // 0 for the newest
	// Key is an expression for the key of the start. With "" each delivery starts a separate task.
	Key    string            `json:"key,omitempty"`
	Params json.RawMessage   `json:"params,omitempty"` // template; nil for the body
	Labels map[string]string `json:"labels,omitempty"` // expressions by name
	Signal string            `json:"signal,omitempty"` // key of the shared state to set
	// Task is an expression for the id of the task to signal. With "" it is the task of Flow with
	// Key.
	Task  string          `json:"task,omitempty"`
	Value json.RawMessage `json:"value,omitempty"` // template; nil for the body
}

// JSON returns the stored form of settings. Expressions are stored as text.
func (s Settings) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return bytes.TrimSpace(b.Bytes()), err
}

// Problem is a problem of settings.
type Problem struct{ Where, What string }

// Problems lists all problems of settings. It is an error.
type Problems []Problem

func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i := range p {
		texts[i] = p[i].Where + ": " + p[i].What
	}
	return strings.Join(texts, "; ")
}

// As converts the problems to a flow.Error of kind Invalid for errors.As.
func (p Problems) As(target any) bool {
	to, ok := target.(**flow.Error)
	if ok {
		*to = flow.Errorf(flow.Invalid, "%s", p.Error())
	}
	return ok
}

// Vars lists the names of the variables in expressions.
var Vars = []string{"body", "headers", "query", "delivery", "hook"}

// Hook is a compiled hook.
type Hook struct {
	Settings
	when, key, task *expr.CEL // nil if not set
	labels          map[string]*expr.CEL
	params, value   *valueTemplate // nil for the body
}

// Compile checks and compiles settings. The error is of type Problems and lists all problems.
func Compile(s Settings) (*Hook, error) {
	c := &compiler{language: expr.NewLanguage(Vars...)}
	h := &Hook{Settings: s, labels: map[string]*expr.CEL{}}
	c.checkShape(&s)
	h.when, h.key, h.task = c.compileOptional("when", s.When), c.compileOptional("key", s.Key), c.compileOptional("task", s.Task)
	if h.when != nil && !h.when.MayBeBool() {
		c.addProblem("when", "it gives %s, not true or false", h.when.Type())
	}
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		h.labels[name] = c.compileExpr("labels."+name, s.Labels[name])
	}
	h.params, h.value = c.compileTemplate("params", s.Params), c.compileTemplate("value", s.Value)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return h, nil
}

// compiler collects all problems of settings.
type compiler struct {
	language *expr.Language
	count    int // number of expressions
	problems Problems
}

func (c *compiler) addProblem(where, format string, args ...any) {
	c.problems = append(c.problems, Problem{where, fmt.Sprintf(format, args...)})
}

// maxExpressions is the maximum number of expressions of one hook.
const maxExpressions = 200

// checkShape checks which settings are allowed together.
func (c *compiler) checkShape(s *Settings) {
	if s.Scheme != "" && !slices.Contains(Schemes, s.Scheme) {
		c.addProblem("scheme", "there is no scheme %.40q: it is one of %s", s.Scheme, strings.Join(Schemes, ", "))
	}
	if s.Header != "" && (s.Scheme == "" || s.Scheme == Standard) {
		c.addProblem("header", "only the schemes %s and %s may have their signature in another header", GitHub, Stripe)
	}
	if s.Version < 0 {
		c.addProblem("version", "it is a number from 1 on, or 0 for the newest")
	}
	if s.Signal == "" {
		c.checkStart(s)
	} else {
		c.checkSignal(s)
	}
}

// checkStart checks the settings of a hook that starts tasks.
func (c *compiler) checkStart(s *Settings) {
	if s.Flow == "" {
		c.addProblem("flow", "say which flow is started, or, with signal, what a task is told")
	}
	if s.Task != "" {
		c.addProblem("task", "only a signal has a task: say with signal which key it sets")
	}
	if len(s.Value) > 0 {
		c.addProblem("value", "only a signal has a value: what a flow is started with is params")
	}
}

// checkSignal checks the settings of a hook that signals tasks.
func (c *compiler) checkSignal(s *Settings) {
	if (s.Task == "") == (s.Flow == "" || s.Key == "") {
		c.addProblem("task", "say which task is signaled: by its id with task, or by flow and the key of its start")
	}
	if s.Task != "" && (s.Flow != "" || s.Key != "") {
		c.addProblem("task", "either task, or flow and key say which task is meant")
	}
	if len(s.Params) > 0 {
		c.addProblem("params", "a signal has no params: what it sets its key to is value")
	}
	if len(s.Labels) > 0 {
		c.addProblem("labels", "a signal has no labels")
	}
	if s.Version > 0 {
		c.addProblem("version", "a signal has no version")
	}
}

func (c *compiler) compileOptional(where, source string) *expr.CEL {
	if source == "" {
		return nil
	}
	return c.compileExpr(where, source)
}

func (c *compiler) compileExpr(where, source string) *expr.CEL {
	if c.count++; c.count > maxExpressions {
		if c.count == maxExpressions+1 {
			c.addProblem(where, "there are more than %d expressions", maxExpressions)
		}
		return nil
	}
	compiled, err := c.language.Compile(source)
	if err == nil {
		return compiled
	}
	var faults expr.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			c.addProblem(where, "%v", expr.Faults{f})
		}
		return nil
	}
	c.addProblem(where, "%v", err)
	return nil
}
