package types_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// value draws JSON of few kinds, so that it often fits.
func value(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 8-min(depth, 3)).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.IntRange(-3, 3).Draw(t, "int")
	case 3:
		return json.Number(rapid.SampledFrom([]string{"0.5", "1.0", "2.5", "1e2", "-0", "12345678901234567890"}).Draw(t, "number"))
	case 4, 5:
		return rapid.SampledFrom([]string{"", "a", "b", "ab", "é", "aaa"}).Draw(t, "text")
	case 6:
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return value(t, depth+1) }), 0, 3).Draw(t, "list")
	}
	fields := map[string]any{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, "keys") {
		fields[key] = value(t, depth+1)
	}
	return fields
}

// schema draws a JSON Schema.
func schema(t *rapid.T, depth int) any {
	if rapid.IntRange(0, 9).Draw(t, "bool") == 0 {
		return rapid.Bool().Draw(t, "schema")
	}
	s := map[string]any{}
	small := func(name string) int { return rapid.IntRange(0, 3).Draw(t, name) }
	inner := func(string) any { return schema(t, depth+1) }
	list := func(name string) any {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return schema(t, depth+1) }), 1, 3).Draw(t, name)
	}
	keys := func(name string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2, rapid.ID).Draw(t, name)
	}
	fields := func(name string) map[string]any {
		m := map[string]any{}
		for _, key := range keys(name) {
			m[key] = schema(t, depth+1)
		}
		return m
	}
	flat := []func(){
		func() {
			s["type"] = rapid.SampledFrom([]any{"string", "integer", "number", "boolean", "array",
				"object", "null", []any{"string", "null"}, []any{"integer", "array"}}).Draw(t, "type")
		},
		func() { s["enum"] = []any{value(t, 2), value(t, 2)} },
		func() { s["const"] = value(t, 2) },
		func() { s["minimum"] = small("min") },
		func() { s["exclusiveMaximum"] = small("under") },
		func() { s["multipleOf"] = rapid.SampledFrom([]any{json.Number("0.5"), 2}).Draw(t, "multiple") },
		func() { s["minLength"], s["maxLength"] = small("short"), small("long") },
		func() { s["pattern"] = rapid.SampledFrom([]string{"^a", "b$", "é"}).Draw(t, "pattern") },
		func() { s["minItems"], s["maxItems"] = small("few"), small("many") },
		func() { s["uniqueItems"] = true },
		func() { s["required"] = keys("required") },
		func() { s["minProperties"], s["maxProperties"] = small("least"), small("most") },
		func() { s["dependentRequired"] = map[string]any{"a": keys("needs")} },
		func() { s["$ref"] = rapid.SampledFrom([]string{"#/$defs/leaf", "#/$defs/tree"}).Draw(t, "ref") },
	}
	deep := []func(){
		func() { s["properties"] = fields("properties") },
		func() { s["patternProperties"] = map[string]any{"^[ab]": inner("pattern")} },
		func() { s["additionalProperties"] = inner("additional") },
		func() { s["unevaluatedProperties"] = inner("unevaluated") },
		func() { s["propertyNames"] = map[string]any{"pattern": "^[ab]$"} },
		func() { s["dependentSchemas"] = fields("implies") },
		func() { s["items"] = inner("items") },
		func() { s["prefixItems"] = list("prefix") },
		func() { s["unevaluatedItems"] = inner("rest") },
		func() {
			s["contains"], s["minContains"], s["maxContains"] = inner("contains"), small("minContains"), small("maxContains")
		},
		func() { s["contains"] = inner("contains") },
		func() { s["allOf"] = list("all") },
		func() { s["anyOf"] = list("any") },
		func() { s["oneOf"] = list("one") },
		func() { s["not"] = inner("not") },
		func() { s["if"], s["then"], s["else"] = inner("if"), inner("then"), inner("else") },
	}
	some := flat
	if depth < 3 {
		some = append(append([]func(){}, flat...), deep...)
	}
	for range rapid.IntRange(1, 3).Draw(t, "keywords") {
		rapid.SampledFrom(some).Draw(t, "keyword")()
	}
	return s
}

func marshaled(t require.TestingT, v any) []byte {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

// whole returns the schema of an object whose one field must fit a schema.
func whole(inner any) map[string]any {
	return map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object", "properties": map[string]any{"x": inner},
		"unevaluatedProperties": false, "$defs": map[string]any{
			"leaf": map[string]any{"type": []any{"integer", "string"}},
			"tree": map[string]any{"type": []any{"object", "string"},
				"properties":            map[string]any{"a": map[string]any{"$ref": "#/$defs/tree"}},
				"unevaluatedProperties": map[string]any{"type": "integer"}},
		}}
}

// TestSchemasAgreeWithAnotherImplementation compares the results with an independent validator.
func TestSchemasAgreeWithAnotherImplementation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := marshaled(t, whole(schema(t, 0)))
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		c := jsonschema.NewCompiler()
		require.NoError(t, c.AddResource("x.json", doc))
		theirs, err := c.Compile("x.json")
		in, problems := types.Read(text)
		if in == nil {
			require.NotEmpty(t, problems)
			require.True(t, err != nil || strings.Contains(problems[0].Msg, "refers to itself"),
				"%s: only we refuse it: %v", text, problems)
			return
		}
		require.NoError(t, err, "%s: only they refuse it", text)
		for range 10 {
			params := marshaled(t, map[string]any{"x": value(t, 0)})
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(params))
			require.NoError(t, err)
			err = theirs.Validate(v)
			_, wrong := in.Check(params)
			require.Equal(t, err == nil, len(wrong) == 0, "%s\n%s\n%v\n%v", text, params, err, wrong)
			for _, p := range wrong {
				require.Equal(t, "x", p.Path[0])
				require.NotEmpty(t, p.Msg)
			}
		}
	})
}

// form draws a form, and a value that fits it.
func form(t *rapid.T, depth int) (form any, fitting any) {
	switch rapid.IntRange(0, 7-min(depth, 2)).Draw(t, "form") {
	case 0:
		return "int", rapid.IntRange(-9, 9).Draw(t, "int")
	case 1:
		return "text", rapid.StringMatching("[a-z ]{0,5}").Draw(t, "text")
	case 2:
		return "optional bool", rapid.Bool().Draw(t, "bool")
	case 3:
		return "one of a | b", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "choice")
	case 4:
		return fmt.Sprintf("int = %d", rapid.IntRange(0, 9).Draw(t, "default")), rapid.IntRange(0, 9).Draw(t, "int")
	case 5:
		return map[string]any{"type": "number", "min": 0, "max": 1}, rapid.SampledFrom([]any{0, 1, json.Number("0.25")}).Draw(t, "number")
	case 6:
		of, one := withoutDefault(t, depth+1)
		return []any{of}, []any{one, one}
	}
	forms, values := fields(t, depth+1)
	return map[string]any{"fields": forms}, values
}

// withoutDefault draws a form without a default, because elements of a list have none.
func withoutDefault(t *rapid.T, depth int) (of any, fitting any) {
	for {
		of, one := form(t, depth)
		if text, ok := of.(string); !ok || !strings.Contains(text, "=") {
			return of, one
		}
	}
}

func fields(t *rapid.T, depth int) (forms, values map[string]any) {
	forms, values = map[string]any{}, map[string]any{}
	for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching("[a-z_]{1,8}"), 0, 4, rapid.ID).Draw(t, "names") {
		forms[name], values[name] = form(t, depth)
	}
	return forms, values
}

// written avoids forms that would count as one JSON Schema.
func written(t *rapid.T) (forms, values map[string]any) {
	forms, values = fields(t, 0)
	delete(forms, "type")
	delete(values, "type")
	return forms, values
}

func TestFittingValuesPassAndDefaultsAreFilledInOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		forms, values := written(t)
		in, problems := types.Read(marshaled(t, forms))
		require.Empty(t, problems)
		again, problems := types.Read(in.Schema())
		require.Empty(t, problems, "the canonical form is read again")
		require.JSONEq(t, string(in.Schema()), string(again.Schema()))
		for name, of := range forms {
			if text, ok := of.(string); ok && (strings.HasPrefix(text, "optional") ||
				strings.Contains(text, "=")) && rapid.Bool().Draw(t, "left out") {
				delete(values, name)
			}
		}
		params := marshaled(t, values)
		filled, wrong := in.Check(params)
		require.Empty(t, wrong)
		twice, wrong := in.Check(filled)
		require.Empty(t, wrong)
		require.Equal(t, string(filled), string(twice))
		for name := range values {
			before, _ := expr.Field(params, name)
			after, there := expr.Field(filled, name)
			require.True(t, there && (len(after) > len(before) || string(after) == string(before)), "what was sent stays as it was")
		}
	})
}

func TestEveryProblemIsReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		forms, values := written(t)
		in, problems := types.Read(marshaled(t, forms))
		require.Empty(t, problems)
		want := map[string]bool{}
		for name, of := range forms {
			text, short := of.(string)
			switch rapid.IntRange(0, 3).Draw(t, "mistake") {
			case 0:
				delete(values, name)
				if !short || !strings.HasPrefix(text, "optional") && !strings.Contains(text, "=") {
					want["$params."+name] = true
				}
			case 1:
				values[name] = nil // none of these forms accepts null
				want["$params."+name] = true
			}
		}
		if rapid.Bool().Draw(t, "unknown") {
			values["something else"] = 1
			want[`$params["something else"]`] = true
		}
		_, wrong := in.Check(marshaled(t, values))
		told := map[string]bool{}
		for _, p := range wrong {
			told[p.Where()] = true
		}
		require.Equal(t, want, told)
	})
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"a":"int = 3 (x)"}`, `{"a":["text"]}`,
		`{"a":{"type":"list of int","min":1,"fields":{"b":"one of 1 | 2"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"anyOf":[true,{"$ref":"#"}]}}}`,
		`{"a":{"pattern":"(a|b)*"}}`, `{"":"text="}`} {
		f.Add(text, `{"a":[1,{"b":2}]}`)
	}
	f.Fuzz(func(t *testing.T, text, params string) {
		if !expr.Valid([]byte(text)) || expr.Deeper([]byte(text), 1_000) {
			return
		}
		in, problems := types.Read(json.RawMessage(text))
		if in == nil {
			require.NotEmpty(t, problems)
			return
		}
		require.True(t, expr.Valid(in.Schema()))
		_ = in.List()
		_ = in.Reaches([]string{"a", "[0]", "b"})
		if !expr.Valid([]byte(params)) || expr.Deeper([]byte(params), 1_000) {
			return
		}
		filled, wrong := in.Check(json.RawMessage(params))
		require.True(t, expr.Valid(filled))
		if len(wrong) == 0 {
			twice, wrong := in.Check(filled)
			require.Empty(t, wrong)
			require.Equal(t, string(filled), string(twice))
		}
		_ = in.Only(json.RawMessage(params))
	})
}

func FuzzShort(f *testing.F) {
	for _, text := range []string{"int = 3", "optional list of text (x)", "one of a | b = a", "= (", "list of "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := json.Marshal(map[string]string{"a": text})
		require.NoError(t, err)
		in, problems := types.Read(raw)
		require.Equal(t, in == nil, len(problems) > 0)
	})
}
