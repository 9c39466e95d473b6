package ork

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// classPattern matches an executor type that is a Python class.
var classPattern = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.]*):([A-Za-z_][A-Za-z0-9_]*)$`)

// readCustom reads a task whose executor is a Python class with a name in ork.yaml. The class
// itself interprets its config.
func (t *task) readCustom(called string, named *executorOf) {
	parts := classPattern.FindStringSubmatch(named.kind)
	if parts == nil {
		named.Errorf(named.at.Key("type"), "Unknown executor type: %.80s%s: write one of %s, or "+
			"MODULE:CLASS for a class of Python", named.kind,
			definition.Guess{Word: named.kind, Names: func() []string { return executors }}, strings.Join(executors, ", "))
		return
	}
	t.refuseFields(called, "file", "command", "module", "function", "job", "image")
	t.executor, t.module, t.function = python, parts[1], parts[2]
	t.custom = execFields{{Key: "ORK_EXECUTOR", Value: expr.Quote(named.kind)}}
	if file := t.getText("config_file"); file != "" {
		t.custom.add("ORK_CONFIG_FILE", expr.Quote(escapeRefs(file)))
		if t.Exists != nil && !t.Exists(file) {
			t.Errorf(t.at.Key("config_file"), "task %s file not found at %s", t.name, file)
		}
	}
	config, has := t.getKind("config", expr.KindObject)
	if !has {
		config = json.RawMessage("{}")
	}
	t.custom.add("ORK_EXECUTOR_CONFIG", expr.Quote(escapeRefs(string(expr.Compact(config)))))
}
