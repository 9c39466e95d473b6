package ork

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// acceptsField reports whether the task's executor uses a field that most executors ignore.
func (t *task) acceptsField(field string) bool {
	switch field {
	case "config":
		return t.dir != "" || !slices.Contains([]string{process, library, worker}, t.executor)
	case "config_file":
		return t.custom != nil
	case "resources":
		return t.executor != worker
	}
	return false
}

// readImage reads the image settings of a task. Invalid values are reported later, with the
// definition.
func (t *task) readImage() {
	t.executor, t.image = container, execFields{}
	if name := t.getText("image"); strings.TrimSpace(name) == "" {
		t.Errorf(t.at, "task %s requires an `image`", t.name)
	} else {
		t.image.add("image", expr.Quote(name))
	}
	if _, list := expr.Elements(t.command); t.command != nil && !list {
		t.getKind("command", expr.KindString)
	}
	t.refuseFields(container, "file", "module", "function", "job")
	t.readImageConfig()
	if in, has := t.getField("input"); has && expr.KindOf(in) == expr.KindObject {
		t.readFile("input", "to_file")
	}
	if out, has := t.getField("output"); has && expr.KindOf(out) == expr.KindObject {
		p, _ := t.getObject("output")
		p.refuseUnknown("from_file")
		t.readFile("output", "from_file")
	}
}

func (t *task) readImageConfig() {
	p, _ := t.getObject("config")
	p.refuseUnknown("pull", "network", "user", "mounts", "gpus", "stdin")
	for _, name := range []string{"pull", "network", "user", "mounts", "gpus"} {
		if v, has := p.getField(name); has {
			t.image.add(name, v)
		}
	}
	if p.getBool("stdin", false) {
		t.image.add("stdin_mode", expr.Quote(flow.StdinJSON))
	}
}

// readResources reads the resource limits of a task, or those of its worker. A cpu below 100 is a
// number of processors; a cpu from 100 on is in thousandths of a processor.
func (t *task) readResources() {
	p, _ := t.getObject("resources")
	p.refuseUnknown("cpu", "memory")
	cpu, _ := p.getField("cpu")
	memory, _ := p.getField("memory")
	if w := t.assignedWorker; w != nil && t.executor != worker && t.executor != cloudRun {
		if memory == nil {
			memory = w.memory
		}
		if cpu == nil && (t.executor == container || t.executor == kubernetes) {
			cpu = w.cpu
		}
	}
	var o jsonObject
	if cpu != nil {
		if n, err := strconv.Atoi(string(cpu)); err == nil && n >= 100 {
			cpu = expr.Quote(string(cpu) + "m")
		}
		o.putField("cpu", cpu)
	}
	if memory != nil {
		o.putField("memory", memory)
	}
	if len(o) > 0 {
		t.resources = o.toJSON()
	}
}

// readFile reads the path of an input or output file in the image.
func (t *task) readFile(in, name string) {
	p, _ := t.getObject(in)
	if path := p.getText(name); path != "" {
		t.image.add(name, expr.Quote(path))
	}
}

// withoutFile returns a static input without the name of the file to which it is written.
func withoutFile(input json.RawMessage) json.RawMessage {
	members, _ := expr.Members(input)
	var o jsonObject
	for _, m := range members {
		if m.Key != "to_file" {
			o.putField(m.Key, m.Value)
		}
	}
	if len(o) == 0 {
		return nil
	}
	return o.toJSON()
}
