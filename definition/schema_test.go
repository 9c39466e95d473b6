package definition

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

var update = flag.Bool("update", false, "write the schema anew")

type obj = map[string]any

// words lists the values of fields that accept only these.
var words = map[string][]string{
	"Definition.mode":        {"graph", "dag", "code"},
	"Definition.profile":     {"troupe", "pocketflow", "ork", "pgflow"},
	"Definition.on_error":    {"follow", "fail", "continue", "fail_fast"},
	"Definition.on_missing":  {"fail", "coerce"},
	"Definition.input_shape": {"run_deps", "deps", "merged", "mapped"},
	"Node.kind": {"executor", "choice", "parallel", "foreach", "subflow", "timer", "wait_event", "approval",
		"fanout", "map", "branch", "output", "remote", "single"},
	"Node.exec_type":        {"push", "remote", "queue", "local_func", "local_script", "external", "direct", "http"},
	"Node.exec_mode":        {"push", "remote", "queue", "local_func", "local_script", "external", "direct", "http"},
	"Node.on_error":         {"follow", "fail"},
	"Node.parallel_mode":    {"sequential", "concurrent"},
	"Node.failure_strategy": {"collect_errors", "continue", "ignore_errors", "fail_fast", "retry"},
	"Node.run_on":           {"success", "always"},
	"Node.route":            {"push", "queue", "direct"},
	"Node.skip_mode":        {"propagate", "optional", "fail"},
	"Node.whenUnmet":        {"skip", "skip-cascade", "fail"},
	"Node.on_exhausted":     {"fail", "skip", "skip-cascade"},
	"Node.input_shape":      {"run_deps", "deps", "merged", "mapped"},
	"ExecSpec.exec_type":    {"push", "remote", "queue", "local_func", "local_script", "external", "direct", "http"},
	"ExecSpec.exec_mode":    {"push", "remote", "queue", "local_func", "local_script", "external", "direct", "http"},
	"Handler.exec_type":     {"push", "remote", "queue", "local_func", "local_script", "external", "direct", "http"},
	"Prep.exec_type":        {"push", "remote", "queue", "local_func", "local_script", "external", "direct", "http"},
	"ExecOf.type":           {"service", "func", "process", "python", "library", "container", "worker"},
	"ExecOf.pull":           {"missing", "always", "never"},
	"ExecOf.stdin_mode":     {"none"},
	"ExecOf.output_mode":    {"marker"},
	"ExecOf.report":         {"exit", "object_store"},
	"EachOf.on_error":       {"fail_fast", "collect", "continue"},
	"Schedule.catchup":      {"one", "none", "all"},
	"Schedule.overlap":      {"allow", "skip", "queue", "cancel_running"},
	"RetrySpec.backoff":     {"fixed", "exponential"},
	"KeySpec.when_full":     {"queue", "refuse", "cancel_running"},
	"Defaults.exec_type":    {"push", "remote", "queue", "local_func", "local_script", "external", "direct", "http"},
	"Defaults.route":        {"push", "queue", "direct"},
	"Defaults.skip_mode":    {"propagate", "optional", "fail"},
}

// objects lists fields of arbitrary JSON that must be objects.
var objects = []string{"Node.params", "ExecSpec.params", "Node.input", "When.if", "When.if_not"}

func TestTheSchemaIsUpToDate(t *testing.T) {
	made := newSchema(t).document()
	if *update {
		require.NoError(t, os.WriteFile("schema.json", made, 0o644))
	}
	kept, err := os.ReadFile("schema.json")
	require.NoError(t, err)
	require.Equal(t, string(kept), string(made), "schema.json is out of date: run go generate")
}

// schema is a schema under construction.
type schema struct {
	t        *testing.T
	comments map[string]string // of types, and of fields as Type.field with Go names
	defs     obj
	used     map[string]bool // used words and objects
}

func newSchema(t *testing.T) *schema {
	s := &schema{t: t, comments: map[string]string{}, defs: obj{}, used: map[string]bool{}}
	for _, file := range []string{"definition.go", "definition_dag.go", "definition_exec.go",
		"definition_container.go", "definition_keys.go", "definition_inputs.go",
		"definition_schedule.go", "../flow/plan.go", "../flow/program.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(parsed, s.read)
	}
	return s
}

// read collects the comments of a type.
func (s *schema) read(n ast.Node) bool {
	decl, ok := n.(*ast.GenDecl)
	if !ok || decl.Tok != token.TYPE {
		return true
	}
	spec := decl.Specs[0].(*ast.TypeSpec)
	s.comments[spec.Name.Name] = sentence(decl.Doc.Text())
	if fields, ok := spec.Type.(*ast.StructType); ok {
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				s.comments[spec.Name.Name+"."+name.Name] = sentence(f.Doc.Text() + f.Comment.Text())
			}
		}
	}
	return true
}

func sentence(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *schema) document() []byte {
	s.ref(reflect.TypeFor[Definition]())
	s.obeyed()
	for name := range words {
		require.True(s.t, s.used[name], "there is no field %s", name)
	}
	for _, name := range objects {
		require.True(s.t, s.used[name], "there is no field %s", name)
	}
	root := obj{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "A flow of Troupe",
		"$ref":    "#/$defs/Definition",
		"$defs":   s.defs,
	}
	b, err := json.MarshalIndent(root, "", "  ")
	require.NoError(s.t, err)
	return append(b, '\n')
}

// ref returns a reference to the description of a named type.
func (s *schema) ref(t reflect.Type) obj {
	if s.defs[t.Name()] == nil {
		s.defs[t.Name()] = obj{} // needed for recursive types
		s.defs[t.Name()] = s.describe(t)
	}
	return obj{"$ref": "#/$defs/" + t.Name()}
}

func (s *schema) describe(t reflect.Type) obj {
	switch t {
	case reflect.TypeFor[Duration]():
		return obj{"description": s.comments["Duration"], "anyOf": []obj{
			{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`, "examples": []string{"250ms", "30s", "1h30m"}},
			{"type": "number", "minimum": 0}}}
	case reflect.TypeFor[Source]():
		return obj{"description": s.comments["Source"],
			"anyOf": []obj{{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0},
				s.ref(reflect.TypeFor[Handler]())}}
	case reflect.TypeFor[Command]():
		return obj{"description": s.comments["Command"],
			"anyOf": []obj{{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1,
				"items": s.ref(reflect.TypeFor[Plain]())}}}
	case reflect.TypeFor[SecretOf]():
		return obj{"description": s.comments["SecretOf"],
			"anyOf": []obj{{"type": "string", "minLength": 1}, s.ref(reflect.TypeFor[flow.Secret]())}}
	case reflect.TypeFor[Plain]():
		return obj{"description": s.comments["Plain"], "type": []string{"string", "number", "boolean"}}
	case reflect.TypeFor[Inner]():
		return obj{"description": s.comments["Inner"],
			"anyOf": []obj{{"type": "string", "minLength": 1}, s.ref(reflect.TypeFor[Definition]())}}
	}
	if t == reflect.TypeFor[Inputs]() {
		s.defs["Input"] = inputForm
		return obj{"description": s.comments["Inputs"], "type": "object", "anyOf": []obj{
			{"required": []string{"type", "properties"},
				"properties": obj{"type": obj{"const": "object"}}}, {"required": []string{"$schema"}},
			{"additionalProperties": obj{"$ref": "#/$defs/Input"}}}}
	}
	properties := obj{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "" {
			properties[name] = s.field(t, f, name)
		}
	}
	d := obj{"type": "object", "description": s.comments[t.Name()], "properties": properties,
		"additionalProperties": false, "patternProperties": obj{`^[.$_]|^x-`: true}}
	if t == reflect.TypeFor[Definition]() {
		d["required"] = []string{"nodes"}
	}
	if t == reflect.TypeFor[Schedule]() {
		return obj{"description": s.comments["Schedule"],
			"anyOf": []obj{{"type": "string", "minLength": 1, "examples": []string{"30 2 * * 1-5",
				"@daily"}}, d}}
	}
	return d
}

// inputForm describes one input. Package types reads its parts.
var inputForm = obj{
	"description": "Input is the type of one input: a text such as int, optional text, list of " +
		"text, int = 3 or one of a | b; a list of one type; or an object that describes it, in " +
		"which any keyword of JSON Schema has its meaning, too.",
	"anyOf": []obj{
		{"type": "string", "minLength": 1, "examples": []string{"text", "int", "number", "bool",
			"object", "any", "list of text", "optional text", "int = 3", "one of small | large"}},
		{"type": "array", "minItems": 1, "maxItems": 1, "items": obj{"$ref": "#/$defs/Input"}},
		{"type": "object", "properties": obj{
			"type":        obj{"type": []string{"string", "array"}, "description": "as in the text, or a list of types of JSON Schema"},
			"description": obj{"type": "string", "description": "for people"},
			"default":     obj{"description": "what it is when it is left out"},
			"optional":    obj{"type": "boolean", "description": "whether it may be left out"},
			"choices":     obj{"type": "array", "minItems": 1, "description": "all that it may be"},
			"min":         obj{"type": "number", "description": "of a number; of a text or list how long it is at least"},
			"max":         obj{"type": "number", "description": "of a number; of a text or list how long it is at most"},
			"pattern":     obj{"type": "string", "description": "regular expression that a text matches"},
			"items":       obj{"anyOf": []any{obj{"$ref": "#/$defs/Input"}, obj{"type": "boolean"}}, "description": "what is in a list"},
			"fields": obj{"type": "object",
				"additionalProperties": obj{"$ref": "#/$defs/Input"},
				"description":          "what is in an object: names and types"},
		}},
	},
}

// field describes a field. The comment of a field of an embedded type is at that type.
func (s *schema) field(t reflect.Type, f reflect.StructField, name string) obj {
	holder := t
	for _, i := range f.Index[:len(f.Index)-1] {
		holder = holder.Field(i).Type
	}
	d := s.value(f.Type, t.Name()+"."+name)
	comment := s.comments[holder.Name()+"."+f.Name]
	require.NotEmpty(s.t, comment, "%s.%s has no comment", holder.Name(), f.Name)
	d["description"] = comment
	return d
}

func (s *schema) value(t reflect.Type, name string) obj {
	if list := words[name]; list != nil {
		s.used[name] = true
		return obj{"enum": list}
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]() && slices.Contains(objects, name):
		s.used[name] = true
		return obj{"type": "object"}
	case t == reflect.TypeFor[json.RawMessage]():
		return obj{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.value(t.Elem(), name)
	case reflect.Struct:
		return s.ref(t)
	case reflect.Map:
		of := s.value(t.Elem(), name+"[]")
		if t.Elem() == reflect.TypeFor[*Node]() { // a node without fields
			of = obj{"anyOf": []obj{of, {"type": "null"}}}
		}
		return obj{"type": "object", "additionalProperties": of}
	case reflect.Slice:
		return obj{"type": "array", "items": s.value(t.Elem(), name+"[]")}
	case reflect.String:
		return obj{"type": "string"}
	case reflect.Bool:
		return obj{"type": "boolean"}
	case reflect.Float64:
		return obj{"type": "number"}
	case reflect.Int, reflect.Int64:
		return obj{"type": "integer"}
	}
	require.FailNow(s.t, "no description", "%s is a %s", name, t)
	return nil
}

// validator returns a validator of the stored schema from an independent library.
func validator(t *testing.T) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	require.NoError(t, c.AddResource("flow.json", doc))
	s, err := c.Compile("flow.json")
	require.NoError(t, err)
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	if !json.Valid(text) {
		var err error
		text, err = YAMLToJSON(text)
		require.NoError(t, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return s.Validate(v)
}

func TestTheSchemaAcceptsRealDefinitions(t *testing.T) {
	s := validator(t)
	var files []string
	for _, glob := range []string{"../examples/flows/*.yaml", "show/testdata/*.yaml"} {
		found, err := filepath.Glob(glob)
		require.NoError(t, err)
		require.NotEmpty(t, found)
		files = append(files, found...)
	}
	for _, file := range files {
		if filepath.Base(file) == "expect.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, validate(t, s, text), file)
	}
	scripts, err := filepath.Glob("../flow/testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for part := range strings.SplitSeq(string(text), "\n===\n") {
			definition, _, _ := strings.Cut(part, "\n---\n")
			require.NoError(t, validate(t, s, []byte(definition)), "%s: %s", file, definition)
		}
	}
}

func TestTheSchemaFindsErrors(t *testing.T) {
	s := validator(t)
	for name, text := range map[string]string{
		"no nodes":                     `{"start":"a"}`,
		"a field that is none":         `{"nodes":{"a":{"servcie":"s"}}}`,
		"a word that is none":          `{"nodes":{"a":{"kind":"exekutor"}}}`,
		"a list that is none":          `{"nodes":{"a":{"depends_on":"b"}}}`,
		"a number that is none":        `{"nodes":{"a":{"timeout_ms":"5"}}}`,
		"a duration that is none":      `{"nodes":{"a":{"timeout":"5 s"}}}`,
		"a wrong field deep inside":    `{"nodes":{"a":{"flow":{"nodes":{"b":{"each":{"item":[]}}}}}}}`,
		"params that are no object":    `{"nodes":{"a":{"params":[]}}}`,
		"an input that is a number":    `{"nodes":{},"inputs":{"a":3}}`,
		"an input of two types":        `{"nodes":{},"inputs":{"a":["text","int"]}}`,
		"an edge that leads to a list": `{"nodes":{},"edges":[{"from":"a","action":"x","to":[]}]}`,
	} {
		require.Error(t, validate(t, s, []byte(text)), name)
	}
	for name, text := range map[string]string{
		"notes of one's own": `{"nodes":{"a":null},"x-team":"blue","_note":[1]}`,
		"a flow by its name": `{"nodes":{"a":{"kind":"branch","flow":"other"}}}`,
		"inputs":             `{"nodes":{},"inputs":{"a":"int = 3","b":["text"],"c":{"fields":{"d":{"type":"optional int","min":1}}}}}`,
		"a schema of inputs": `{"nodes":{},"inputs":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}`,
		"seconds":            `{"profile":"ork","nodes":{"a":{"timeout":5}}}`,
	} {
		require.NoError(t, validate(t, s, []byte(text)), name)
	}
}
