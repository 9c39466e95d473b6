package ork

import (
	"encoding/json"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// orkSettings are the settings of ork.yaml.
type orkSettings struct {
	executors map[string]*executorOf
	unchecked bool // outputs are not checked against their types
}

// executorOf is an executor with a name in ork.yaml.
type executorOf struct {
	textPart
	kind   string // a built-in executor, or MODULE:CLASS
	config json.RawMessage
}

func (r *reader) readSettings(f Beside) {
	if f.Name == "" {
		return
	}
	p := r.openBeside(f)
	p.refuseUnknown("executors", "env_file", "api", "notifications", "validation")
	p.getText("env_file")
	all, _ := p.getObject("executors")
	members, _ := expr.Members(all.raw)
	r.settings.executors = map[string]*executorOf{}
	for _, m := range members {
		if e := all.executorOf(m); e != nil {
			r.settings.executors[m.Key] = e
		}
	}
	if v, has := p.getObject("validation"); has {
		v.refuseUnknown("enabled")
		r.settings.unchecked = !v.getBool("enabled", true)
	}
	p.idleSettings()
}

func (p textPart) executorOf(m expr.Member) *executorOf {
	e := &executorOf{textPart: textPart{p.reader, p.at.Key(m.Key), m.Value}}
	if kind := expr.KindOf(m.Value); kind != expr.KindObject {
		p.Errorf(e.at, "must be an object such as {type: MODULE:CLASS, config: …}, is %s", kind)
		return nil
	}
	e.refuseUnknown("type", "config")
	e.kind, e.config = e.getText("type"), json.RawMessage("{}")
	if _, has := e.getField("type"); !has {
		e.Errorf(e.at, "has no type: write one of %s, or MODULE:CLASS for a class of Python", strings.Join(executors, ", "))
	}
	if config, has := e.getKind("config", expr.KindObject); has {
		e.config = config
	}
	return e
}

// idleSettings reports settings that have no effect here, and their replacement.
func (p textPart) idleSettings() {
	if _, has := p.getField("env_file"); has {
		p.Notef(definition.At("env_file"), "is read by troupe dev alone, since all of a flow can be "+
			"seen by whoever sees the flow: start another member with these variables and "+
			"--child-env, or keep them as secrets")
	}
	if _, has := p.getField("notifications"); has {
		p.Warnf(definition.At("notifications"), "nobody is told because of this: troupe hook set tells of tasks that fail")
	}
	api, has := p.getObject("api")
	if !has {
		return
	}
	p.Warnf(definition.At("api"), "nobody is asked because of this: --server and --token, or "+
		"TROUPE_SERVER and TROUPE_TOKEN, say where the server is and who asks it")
	api.refuseUnknown("url", "auth")
	auth, has := api.getObject("auth")
	if !has {
		return
	}
	auth.refuseUnknown("type", "header", "value")
	if word := auth.getText("type"); word != "api_key" {
		auth.Errorf(auth.at.Key("type"), "unknown word %.80q: write api_key", word)
	}
}

// EnvFile returns the file with variables for development that a text of ork.yaml names, relative
// to ork.yaml. It returns "" if the text names none.
func EnvFile(text []byte) string {
	raw, _ := definition.Read(text)
	named, _ := expr.Field(raw, "env_file")
	file, _ := expr.String(named)
	return file
}

// executorConfig returns the config of a built-in executor under its own name.
func (s *orkSettings) executorConfig(word string) json.RawMessage {
	if e := s.executors[word]; e != nil && e.kind == word {
		return e.config
	}
	return nil
}

// inheritConfig adds the parts of a config that the task's own config lacks.
func (t *task) inheritConfig(config json.RawMessage) {
	members, _ := expr.Members(config)
	own, said := t.getField("config")
	if len(members) == 0 || said && expr.KindOf(own) != expr.KindObject {
		return
	}
	t.raw = withField(t.raw, "config", expr.Merge(config, own))
}

// withField returns an object with a new value for a field.
func withField(of json.RawMessage, name string, v json.RawMessage) json.RawMessage {
	var field jsonObject
	field.putField(name, v)
	return expr.Merge(of, field.toJSON())
}
