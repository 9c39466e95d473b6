package ork

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"

	"github.com/troupe-engine/troupe/flow/expr"
)

// jsonObject is a JSON object under construction.
type jsonObject []byte

func (o *jsonObject) putField(key string, v json.RawMessage) {
	if len(*o) == 0 {
		*o = append(*o, '{')
	} else {
		*o = append(*o, ',')
	}
	*o = append(append(append(*o, expr.Quote(key)...), ':'), v...)
}

func (o *jsonObject) toJSON() json.RawMessage {
	if len(*o) == 0 {
		return json.RawMessage("{}")
	}
	return append(json.RawMessage(*o), '}')
}

func (o *jsonObject) putText(key, text string) {
	if text != "" {
		o.putField(key, expr.Quote(text))
	}
}

func secondsJSON(s float64) json.RawMessage {
	if s == 0 {
		return expr.Quote("0s") // no limit, which a number cannot express
	}
	return strconv.AppendFloat(nil, s, 'f', -1, 64)
}

func numberJSON(n int) json.RawMessage { return strconv.AppendInt(nil, int64(n), 10) }

// sharedFields are the fields that workflows and definitions have in common.
var sharedFields = []string{"on_error", "input_shape", "schedule"}

// writeDefinition returns the workflow as a definition.
func (r *reader) writeDefinition(p textPart) json.RawMessage {
	var o, nodes jsonObject
	o.putText("name", r.name)
	o.putText("description", p.getText("description"))
	o.putText("profile", "ork")
	for _, field := range sharedFields {
		if v, has := p.getField(field); has {
			o.putField(field, v)
		}
	}
	for _, t := range r.tasks {
		nodes.putField(t.key, t.writeNode())
	}
	o.putField("nodes", nodes.toJSON())
	return o.toJSON()
}

// writeNode returns a task as a node.
func (t *task) writeNode() json.RawMessage {
	var o jsonObject
	if t.key != t.name {
		o.putText("name", t.name)
	}
	t.writeRunner(&o)
	if len(t.deps) > 0 {
		list := []byte{'['}
		for i, d := range t.deps {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, expr.Quote(d.key)...)
		}
		o.putField("depends_on", append(list, ']'))
	}
	if t.always {
		o.putText("run_on", "always")
	}
	t.writeInput(&o)
	if each := t.writeEach(); each != nil {
		o.putField("each", each)
	}
	if s := t.timeLimit(); s != nil {
		o.putField("timeout", secondsJSON(*s))
	}
	if t.startTimeout != nil {
		o.putField("start_timeout", secondsJSON(*t.startTimeout))
	}
	if t.heartbeatTimeout != nil {
		o.putField("heartbeat_timeout", secondsJSON(*t.heartbeatTimeout))
	}
	if retry := t.writeRetry(); retry != nil {
		o.putField("retry", retry)
	}
	if t.outType != nil && !t.unchecked {
		o.putField("output_type", t.outType.toDefinition())
	}
	return o.toJSON()
}

func firstSet[T any](v, otherwise *T) *T {
	if v != nil {
		return v
	}
	return otherwise
}

// writeExec returns the executor of a task: the program, and the variables with its names.
func (t *task) writeExec() json.RawMessage {
	var o jsonObject
	o.putText("type", t.executor)
	if t.command != nil {
		o.putField("command", t.command)
	}
	o.putText("file", t.file)
	o.putText("module", t.module)
	o.putText("function", t.function)
	o.putText("url", t.url)
	if t.executor != worker {
		o.putText("root", t.workFolder())
	}
	o.putText("report", t.report)
	o.putField("env", t.writeEnv())
	if len(t.secrets) > 0 {
		var secrets jsonObject
		for _, s := range t.secrets {
			secrets.putField(s.variable, s.toDefinition())
		}
		o.putField("secrets", secrets.toJSON())
	}
	if t.resources != nil {
		o.putField("resources", t.resources)
	}
	for _, m := range slices.Concat(t.image, t.options) {
		o.putField(m.Key, m.Value)
	}
	return o.toJSON()
}

// workFolder returns the folder in which the program runs.
func (t *task) workFolder() string {
	if t.dir == "" || t.dir == "." {
		return t.Root
	}
	return path.Join(t.Root, t.dir)
}

// writeEnv returns variables with a task's index in the file and its name.
func (t *task) writeEnv() json.RawMessage {
	var o jsonObject
	o.putField("task_index", expr.Quote(strconv.Itoa(t.index)))
	if name := t.name; t.key != name {
		if !t.isExternalJob() { // templates are not expanded there
			name = escapeRefs(name)
		}
		o.putText("task_name", name)
		o.putText("ORK_TASK_NAME", name)
	}
	for _, m := range slices.Concat(t.custom, t.variables) {
		o.putField(m.Key, m.Value)
	}
	return o.toJSON()
}

// writeInput writes the inputs of a task besides the outputs of its dependencies.
func (t *task) writeInput(o *jsonObject) {
	if t.static != nil {
		o.putField("input", t.static)
	}
	if len(t.bindings) == 0 {
		return
	}
	var inputs jsonObject
	for _, b := range t.bindings {
		var one jsonObject
		if b.ref != nil {
			one.putText("ref", b.ref.toDefinition())
		} else {
			one.putField("const", b.value)
		}
		inputs.putField(b.name, one.toJSON())
	}
	o.putField("inputs", inputs.toJSON())
}

func (t *task) writeEach() json.RawMessage {
	if t.items == nil && t.count == nil && t.parallel == nil {
		return nil
	}
	var o jsonObject
	if t.items != nil {
		o.putText("items", t.items.toDefinition())
	}
	switch {
	case t.count != nil:
		o.putText("count", t.count.toDefinition())
	case t.parallel != nil:
		o.putField("count", t.parallel)
	}
	if t.concurrency != nil {
		o.putField("concurrency", numberJSON(*t.concurrency))
	}
	return o.toJSON()
}

// writeRetry returns the number of attempts and the delays: fixed, or doubling from a second to a
// minute.
func (t *task) writeRetry() json.RawMessage {
	retries, delay := firstSet(t.retries, t.reader.defaults.retries), firstSet(t.delay, t.reader.defaults.delay)
	if retries == nil || *retries == 0 {
		return nil
	}
	var o jsonObject
	o.putField("max_attempts", numberJSON(*retries+1))
	if t.exponential {
		first := 1.0
		o.putField("delay", secondsJSON(*firstSet(delay, &first)))
		o.putText("backoff", "exponential")
		o.putField("max_delay", secondsJSON(60))
	} else if delay != nil && *delay > 0 {
		o.putField("delay", secondsJSON(*delay))
	}
	return o.toJSON()
}
