package ork

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// taskSecret is a secret that a task gets in a variable, or in a file that a variable names.
type taskSecret struct{ variable, name, file string }

// toDefinition returns the secret in the form of a definition.
func (s *taskSecret) toDefinition() json.RawMessage {
	if s.file == "" {
		return expr.Quote(s.name)
	}
	var o jsonObject
	o.putText("secret", s.name)
	o.putText("file", s.file)
	return o.toJSON()
}

// readEnv reads variables: texts, numbers and booleans, or {secret: NAME}; Ork ignores values of
// other kinds.
func (t *task) readEnv() {
	env, _ := t.getObject("env")
	members, _ := expr.Members(env.raw)
	for _, m := range members {
		at := env.at.Key(m.Key)
		switch kind := expr.KindOf(m.Value); kind {
		case expr.KindObject:
			p := textPart{t.reader, at, m.Value}
			p.refuseUnknown("secret")
			t.addSecret(p, m.Key, "")
		case expr.KindString, expr.KindNumber, expr.KindBool:
			t.variables = append(t.variables, m)
		default:
			t.Warnf(at, "is %s, which no variable can be: it is left out", kind)
		}
	}
}

// addSecret adds the secret that a part of the text names.
func (t *task) addSecret(p textPart, variable, file string) {
	name := p.getText("secret")
	if _, has := p.getField("secret"); !has {
		p.Errorf(p.at, "names no secret: write {secret: NAME}")
	}
	if t.isExternalJob() {
		p.Errorf(p.at, "this server hands no secrets to jobs of %s: have the job itself name them", systems[t.executor])
	}
	t.secrets = append(t.secrets, taskSecret{variable, name, file})
}

// readSecrets reads the secrets in files. The path of such a file is a path inside an image.
func (t *task) readSecrets() {
	list, _ := t.getKind("secrets", expr.KindArray)
	elements, _ := expr.Elements(list)
	for i, e := range elements {
		p := textPart{t.reader, t.at.Key("secrets").Index(i), e}
		if expr.KindOf(e) != expr.KindObject {
			t.Errorf(p.at, "must be an object such as {name: db, secret: db-password, path: /secrets/db}, is %s", expr.KindOf(e))
			continue
		}
		p.refuseUnknown("name", "secret", "path")
		name, path := p.getText("name"), p.getText("path")
		if name == "" {
			name = path[strings.LastIndexByte(path, '/')+1:]
		}
		variable := variableOf(name)
		switch {
		case variable == "":
			t.Errorf(p.at, "has no name: the variable of that name says where the file is")
			continue
		case strings.HasPrefix(path, "/") && t.image == nil:
			t.Warnf(p.at.Key("path"), "a program finds the file where the variable %s says: "+
				"only an image has one of its own at %.80s", variable, path)
		}
		t.addSecret(p, variable, path)
	}
}

// variableOf turns a name into a valid name of a shell variable.
func variableOf(name string) string {
	variable := strings.Map(func(r rune) rune {
		if r == '_' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, name)
	if variable != "" && unicode.IsDigit(rune(variable[0])) {
		return "_" + variable
	}
	return variable
}

// translateTemplates replaces Ork's references by references of a definition. {{ task.field }} is
// an output of the task, which becomes a dependency.
func (t *task) translateTemplates() {
	for i, m := range t.variables {
		text, isText := expr.String(m.Value)
		switch at := t.at.Key("env").Key(m.Key); {
		case !isText:
		case !t.isExternalJob():
			t.variables[i].Value = expr.Quote(t.translateTemplate(text, at))
		case strings.Contains(text, "{{"):
			t.Errorf(at, "templates are not filled in for jobs of %s: the job finds what others put out in its input", systems[t.executor])
		}
	}
}

// escapeRefs escapes text for a variable that may contain references of a definition.
func escapeRefs(text string) string { return strings.ReplaceAll(text, "${", "$${") }

func (t *task) translateTemplate(text string, at *definition.Place) string {
	var b strings.Builder
	for {
		before, rest, opened := strings.Cut(text, "{{")
		inside, after, closed := strings.Cut(rest, "}}")
		switch {
		case !opened:
			return b.String() + escapeRefs(text)
		case !closed:
			t.Errorf(at, "a {{ without its }}: write {{ task.field }}")
			return ""
		}
		b.WriteString(escapeRefs(before))
		if strings.HasSuffix(before, "$") {
			t.Errorf(at, "a $ right before {{ cannot be told from the beginning of a reference: put something between them")
		}
		b.WriteString(t.variableRef(strings.TrimSpace(inside), at))
		text = after
	}
}

// variableRef returns the reference of a definition for a reference of Ork in a variable.
func (t *task) variableRef(text string, at *definition.Place) string {
	ref := t.readTaskRefAt(at, text)
	switch {
	case ref == nil:
		return ""
	case strings.Contains(ref.path, ":-") || strings.Contains(ref.path, "}"):
		t.Errorf(at, "{{ %.80s }} leads nowhere: write {{ task.field }}", text)
	}
	or := ""
	if t.always { // the task may have failed
		or = ":-"
	}
	return "${" + strings.TrimPrefix(ref.toDefinition(), "$") + or + "}"
}
