package ork

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/troupe-engine/troupe/flow/expr"
)

// object is a JSON object that is being written.
type object []byte

func (o *object) put(key string, v json.RawMessage) {
	if len(*o) == 0 {
		*o = append(*o, '{')
	} else {
		*o = append(*o, ',')
	}
	*o = append(append(append(*o, expr.Quote(key)...), ':'), v...)
}

func (o *object) text() json.RawMessage {
	if len(*o) == 0 {
		return json.RawMessage("{}")
	}
	return append(json.RawMessage(*o), '}')
}

func (o *object) say(key, text string) {
	if text != "" {
		o.put(key, expr.Quote(text))
	}
}

func seconds(s float64) json.RawMessage {
	if s == 0 {
		return expr.Quote("0s") // none, which a number cannot say
	}
	return strconv.AppendFloat(nil, s, 'f', -1, 64)
}

func number(n int) json.RawMessage { return strconv.AppendInt(nil, int64(n), 10) }

// same are the fields of a workflow that a definition has, too.
var same = []string{"on_error", "input_shape", "schedule"}

// definition is the workflow in our words.
func (r *reader) definition(p part) json.RawMessage {
	var o, nodes object
	o.say("name", r.name)
	o.say("description", p.text("description"))
	o.say("profile", "ork")
	for _, field := range same {
		if v, has := p.get(field); has {
			o.put(field, v)
		}
	}
	for _, t := range r.tasks {
		nodes.put(t.key, t.node())
	}
	o.put("nodes", nodes.text())
	return o.text()
}

// node is a task in our words.
func (t *task) node() json.RawMessage {
	var o object
	if t.key != t.name {
		o.say("name", t.name)
	}
	t.runs(&o)
	if len(t.deps) > 0 {
		list := []byte{'['}
		for i, d := range t.deps {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, expr.Quote(d.key)...)
		}
		o.put("depends_on", append(list, ']'))
	}
	if t.always {
		o.say("run_on", "always")
	}
	t.input(&o)
	if each := t.each(); each != nil {
		o.put("each", each)
	}
	if s := or(t.timeout, t.defaults.timeout); s != nil {
		o.put("timeout", seconds(*s))
	}
	if t.start != nil {
		o.put("start_timeout", seconds(*t.start))
	}
	if t.silence != nil {
		o.put("heartbeat_timeout", seconds(*t.silence))
	}
	if retry := t.tries(); retry != nil {
		o.put("retry", retry)
	}
	if t.outType != nil && !t.unchecked {
		o.put("output_type", t.outType.native())
	}
	return o.text()
}

func or[T any](v, otherwise *T) *T {
	if v != nil {
		return v
	}
	return otherwise
}

// exec says what runs, and under which names it knows itself.
func (t *task) exec() json.RawMessage {
	var o object
	o.say("type", t.executor)
	if t.command != nil {
		o.put("command", t.command)
	}
	o.say("file", t.file)
	o.say("module", t.module)
	o.say("function", t.function)
	o.say("url", t.url)
	if t.executor != worker {
		o.say("root", t.Root)
	}
	o.say("report", t.report)
	o.put("env", t.env())
	if len(t.secrets) > 0 {
		var secrets object
		for _, s := range t.secrets {
			secrets.put(s.variable, s.native())
		}
		o.put("secrets", secrets.text())
	}
	if t.resources != nil {
		o.put("resources", t.resources)
	}
	for _, m := range slices.Concat(t.image, t.options) {
		o.put(m.Key, m.Value)
	}
	return o.text()
}

// env are variables that tell a task its place in the file and its name.
func (t *task) env() json.RawMessage {
	var o object
	o.put("task_index", expr.Quote(strconv.Itoa(t.index)))
	if name := t.name; t.key != name {
		if !t.outside() { // nobody looks for templates there
			name = literal(name)
		}
		o.say("task_name", name)
		o.say("ORK_TASK_NAME", name)
	}
	for _, m := range t.variables {
		o.put(m.Key, m.Value)
	}
	return o.text()
}

// input is what the task gets beside what its dependencies put out.
func (t *task) input(o *object) {
	if t.static != nil {
		o.put("input", t.static)
	}
	if len(t.bindings) == 0 {
		return
	}
	var inputs object
	for _, b := range t.bindings {
		var one object
		if b.ref != nil {
			one.say("ref", b.ref.native())
		} else {
			one.put("const", b.value)
		}
		inputs.put(b.name, one.text())
	}
	o.put("inputs", inputs.text())
}

func (t *task) each() json.RawMessage {
	if t.items == nil && t.count == nil && t.parallel == nil {
		return nil
	}
	var o object
	if t.items != nil {
		o.say("items", t.items.native())
	}
	switch {
	case t.count != nil:
		o.say("count", t.count.native())
	case t.parallel != nil:
		o.put("count", t.parallel)
	}
	if t.concurrency != nil {
		o.put("concurrency", number(*t.concurrency))
	}
	return o.text()
}

// tries says how often and how far apart: a fixed time, or doubling ones from a second to a minute.
func (t *task) tries() json.RawMessage {
	retries, delay := or(t.retries, t.reader.defaults.retries), or(t.delay, t.reader.defaults.delay)
	if retries == nil || *retries == 0 {
		return nil
	}
	var o object
	o.put("max_attempts", number(*retries+1))
	if t.exponential {
		first := 1.0
		o.put("delay", seconds(*or(delay, &first)))
		o.say("backoff", "exponential")
		o.put("max_delay", seconds(60))
	} else if delay != nil && *delay > 0 {
		o.put("delay", seconds(*delay))
	}
	return o.text()
}
