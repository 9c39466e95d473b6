package ork

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// execFields are fields of a node's exec.
type execFields []expr.Member

func (f *execFields) add(name string, v json.RawMessage) {
	*f = append(*f, expr.Member{Key: name, Value: v})
}

// readOptions reads the settings for running a program. They do not apply to tasks that run
// elsewhere.
func (t *task) readOptions() {
	switch t.executor {
	case worker, cloudRun, kubernetes:
		t.refuseFields(t.executor, "output_mode", "upstream_env", "grace")
		return
	case library:
		t.refuseFields(library, "output_mode")
	case python:
		if t.custom == nil {
			t.readPythonConfig()
		}
	}
	switch word := t.getText("output_mode"); word {
	case "":
	case flow.OutputMarker:
		t.options.add("output_mode", expr.Quote(word))
	default:
		t.Errorf(t.at.Key("output_mode"), "unknown word %.80q: write %s, or leave it out", word, flow.OutputMarker)
	}
	if t.getBool("upstream_env", t.custom != nil) {
		t.options.add("upstream_env", json.RawMessage("true"))
	}
	switch grace := t.getSeconds("grace"); {
	case grace == nil:
	case *grace < 0.001:
		t.Errorf(t.at.Key("grace"), "must be more than 0 seconds")
	case t.image != nil && *grace > 20:
		t.Errorf(t.at.Key("grace"), "is more than the 20 seconds that a container may take to end")
	default:
		t.options.add("grace", secondsJSON(*grace))
	}
}

// readPythonConfig reads the interpreter of a function, and the number of its processes that are
// kept warm.
func (t *task) readPythonConfig() {
	p, _ := t.getObject("config")
	p.refuseUnknown("python", "warm")
	if interpreter := p.getText("python"); interpreter != "" {
		t.options.add("python", expr.Quote(interpreter))
	}
	switch n := p.getCount("warm", 0); {
	case n == nil:
	case *n > flow.MaxWarm:
		t.Errorf(p.at.Key("warm"), "must be a number from 0 to %d", flow.MaxWarm)
	default:
		t.options.add("warm", numberJSON(*n))
	}
}
