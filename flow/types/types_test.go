package types_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/types"
)

func read(t testing.TB, text string) *types.Inputs {
	t.Helper()
	in, problems := types.Read(json.RawMessage(text))
	require.NotNil(t, in, "%s: %v", text, problems)
	require.Empty(t, problems, text)
	return in
}

// told returns problems as texts.
func told(problems []types.Problem) []string {
	list := []string{}
	for _, p := range problems {
		list = append(list, p.String())
	}
	return list
}

func TestShortFormsAreJSONSchemas(t *testing.T) {
	for form, schema := range map[string]string{
		`"text"`:                          `{"type":"string"}`,
		`"int"`:                           `{"type":"integer"}`,
		`"number"`:                        `{"type":"number"}`,
		`"bool"`:                          `{"type":"boolean"}`,
		`"object"`:                        `{"type":"object"}`,
		`"list"`:                          `{"type":"array"}`,
		`"any"`:                           `{}`,
		`"string"`:                        `{"type":"string"}`,
		`"list of text"`:                  `{"type":"array","items":{"type":"string"}}`,
		`["text"]`:                        `{"type":"array","items":{"type":"string"}}`,
		`"list of list of int"`:           `{"type":"array","items":{"type":"array","items":{"type":"integer"}}}`,
		`[{"fields":{"sku":"text"}}]`:     `{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"],"additionalProperties":false}}`,
		`"one of small | large"`:          `{"enum":["small","large"]}`,
		`"one of 1 | 2.5"`:                `{"enum":[1,2.5]}`,
		`"one of 1 | b"`:                  `{"enum":["1","b"]}`,
		`"text (what it is)"`:             `{"type":"string","description":"what it is"}`,
		`{"type":"int","min":1,"max":9}`:  `{"type":"integer","minimum":1,"maximum":9}`,
		`{"min":1,"type":"text"}`:         `{"type":"string","minLength":1}`,
		`{"type":"list of int","max":3}`:  `{"type":"array","items":{"type":"integer"},"maxItems":3}`,
		`{"choices":["a","b"]}`:           `{"enum":["a","b"]}`,
		`{"type":"text","pattern":"^a$"}`: `{"type":"string","pattern":"^a$"}`,
		`{"type":["string","null"]}`:      `{"type":["string","null"]}`,
		`{"type":"list","items":"text"}`:  `{"type":"array","items":{"type":"string"}}`,
		`{"type":"text","description":"d","x-a":1}`: `{"type":"string","description":"d","x-a":1}`,
	} {
		in := read(t, `{"it":`+form+`}`)
		require.JSONEq(t, `{"type":"object","properties":{"it":`+schema+
			`},"required":["it"],"additionalProperties":false}`, string(in.Schema()), form)
	}
}

func TestOptionalAndDefaultedInputsMayBeMissing(t *testing.T) {
	for form, schema := range map[string]string{
		`"optional text"`:                `{"type":"string"}`,
		`"int = 3"`:                      `{"type":"integer","default":3}`,
		`"text = 3"`:                     `{"type":"string","default":"3"}`,
		`"text = a b"`:                   `{"type":"string","default":"a b"}`,
		`"text = \"a (b)\""`:             `{"type":"string","default":"a (b)"}`,
		`"text ="`:                       `{"type":"string","default":""}`,
		`"int = 3 (how many)"`:           `{"type":"integer","description":"how many","default":3}`,
		`"list of text = [\"a\"]"`:       `{"type":"array","items":{"type":"string"},"default":["a"]}`,
		`"one of small | large = small"`: `{"enum":["small","large"],"default":"small"}`,
		`"any = yes"`:                    `{"default":"yes"}`,
		`{"type":"int","optional":true}`: `{"type":"integer"}`,
		`{"type":"optional int"}`:        `{"type":"integer"}`,
		`{"type":"int","default":4}`:     `{"type":"integer","default":4}`,
		`{"type":"text","required":["a"],"optional":true}`: `{"type":"string","required":["a"]}`,
	} {
		in := read(t, `{"it":`+form+`}`)
		require.JSONEq(t, `{"type":"object","properties":{"it":`+schema+`},"additionalProperties":false}`, string(in.Schema()), form)
	}
}

func TestAnInvalidFormIsReportedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:          `: must be an object such as {amount: int}, is an array`,
		`{"a":"itn"}`: `a: unknown type "itn": did you mean int?`,
		`{"a":"money"}`: `a: unknown type "money": write text, int, ` +
			`number, bool, object, any, list of text, one of a | b, or optional before it`,
		`{"a":null}`: `a: names no type: write text, int, number, ` +
			`bool, object, any, list of text, one of a | b, or optional before it`,
		`{"a":3}`: `a: must be a type such as text or int, or an object that ` +
			`describes one, is a number`,
		`{"a":"x | y"}`:      `a: "x | y" is no type: choices are written one of x | y`,
		`{"a":"one of x |"}`: `a: one of "x |" has an empty choice: write one of a | b`,
		`{"a":["text","int"]}`: `a: a list has one type inside, such as ` +
			`[text]; this one has 2: for choices write one of a | b`,
		`{"a":"int = x"}`: `a: the default "x" is no JSON`,
		`{"a":"int = 3.5"}`: `a.default: does not fit what it is the default ` +
			`of: it is 3.5, an int was declared`,
		`{"a":{"type":"int","min":"1"}}`: `a.min: must be a number of at most 400 digits, is "1"`,
		`{"a":{"type":"bool","min":1}}`: `a.min: has a meaning for text, int, number and ` +
			`list alone: say the type`,
		`{"a":{"type":"int","optional":1}}`: `a.optional: must be true or false, is a number`,
		`{"a":{"type":"int","required":true}}`: `a.required: inputs are required unless ` +
			`they are optional: leave it out, or write optional: true`,
		`{"a":{"fields":{"b":"txet"}}}`:            `a.fields.b: unknown type "txet": did you mean text?`,
		`{"a":{"type":"text","pattern":"("}}`:      "a.pattern: error parsing regexp: missing closing ): `(`",
		`{"a":{"type":"text","pattern":"a{900}"}}`: `a.pattern: the regular expression has 902 states, more than 200`,
		`{"a.b":"int"}`: `a.b: "a.b" is no name: one has 1 to 256 ` +
			`bytes and no dots or brackets, so that $params.NAME finds it`,
		`{"a":{"type":["text"]}}`: `a.type: unknown type "text": write string, ` +
			`integer, number, boolean, array, object or null`,
		`{"a":{"$ref":"http://x.y/z"}}`: `a.$ref: "http://x.y/z" is in another ` +
			`document, and nothing is loaded: put it under $defs and write #/$defs/NAME`,
		`{"a":{"$dynamicRef":"#x"}}`:                                                                                                    `a.$dynamicRef: is not understood: write $ref`,
		`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`:                                                                `properties.a: refers to itself without looking at anything in between`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}}`:                                                                     `properties.a.$ref: there is nothing at "#/$defs/b"`,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"a":{"$ref":"#/properties/a"}},"default":{}}}}`:              ``,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"a":{"$ref":"#/properties/a","default":{}}},"default":{}}}}`: `properties.a.default: fills itself in without end`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`:                                                         `$schema: is "http://json-schema.org/draft-07/schema#": only https://json-schema.org/draft/2020-12/schema is understood, for the whole schema`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`:                                                                    `: must say type: object, because what a task is started with is one`,
	} {
		in, problems := types.Read(json.RawMessage(text))
		if want == "" {
			require.Empty(t, problems, text)
			continue
		}
		require.Nil(t, in, text)
		require.NotEmpty(t, problems, text)
		p := problems[0]
		require.Equal(t, want, strings.Join(p.Path, ".")+": "+p.Msg, text)
	}
}

func TestAMisspelledKeywordIsAWarning(t *testing.T) {
	in, problems := types.Read(json.RawMessage(`{"a":{"type":"int","minimun":3}}`))
	require.NotNil(t, in)
	require.Len(t, problems, 1)
	require.True(t, problems[0].Warning)
	require.Equal(t, "$params.a.minimun: unknown keyword, ignored: did you mean minimum?", problems[0].String())
}

func TestAllProblemsOfInputsAreReportedAtOnce(t *testing.T) {
	in := read(t, `{"amount":"int (in cents)","limit":"int = 3","note":"optional text","items":["text"],
		"size":"one of small | large","to":{"fields":{"zip":{"type":"text","pattern":"^[0-9]+$","min":5}}},"rate":{"type":"number","min":0,"max":1}}`)
	_, problems := in.Check(json.RawMessage(
		`{"limit":"x","note":null,"items":["a",2],"size":"big","to":{"zip":"12a","street":1},"rate":1.5,"amuont":1}`))
	require.ElementsMatch(t, []string{
		`$params.amount: is missing: an int was declared (in cents)`,
		`$params.limit: is text "x", an int was declared`,
		`$params.note: is null, text was declared`,
		`$params.items[1]: is 2, text was declared`,
		`$params.size: is text "big", one of "small", "large" was declared`,
		`$params.to.zip: has 3 characters, at least 5 were declared`,
		`$params.to.zip: is text "12a", a text that matches ^[0-9]+$ was declared`,
		`$params.to.street: is not declared: there is zip`,
		`$params.rate: is 1.5, at most 1 was declared`,
		`$params.amuont: is not declared: did you mean amount?`,
	}, told(problems))
}

func TestDefaultsAreFilledIn(t *testing.T) {
	in := read(t, `{"amount":"int","limit":"int = `+
		`3","to":{"optional":true,"fields":{"country":"text = `+
		`DE","zip":"text"}},"rows":{"items":{"fields":{"n":"int = 1"}},"type":"list","default":[{}]}}`)
	for sent, want := range map[string]string{
		`{"amount":1}`: `{"amount":1,"limit":3,"rows":[{"n":1}]}`,
		`{"amount":1,"to":{"zip":"1"},"rows":[{}]}`: `{"amount":1,"to":{"zip":"1","country":"DE"},"rows":[{"n":1}],"limit":3}`,
		`{ "amount" : 1, "limit":4,"rows":[]}`:      `{ "amount" : 1, "limit":4,"rows":[]}`,
	} {
		filled, problems := in.Check(json.RawMessage(sent))
		require.Empty(t, problems)
		require.Equal(t, want, string(filled))
		again, problems := in.Check(filled)
		require.Empty(t, problems)
		require.Equal(t, want, string(again))
	}
	filled, problems := read(t, `{"limit":"int = 3"}`).Check(nil)
	require.Empty(t, problems)
	require.Equal(t, `{"limit":3}`, string(filled))
}

func TestUndeclaredFieldsAreRejectedByDefault(t *testing.T) {
	const closed = `{"type":"object","properties":{"a":{"type":"integer"}},"allOf":[{"properties":{"b":true}}]}`
	_, problems := read(t, closed).Check(json.RawMessage(`{"a":1,"b":2,"c":3}`))
	require.Equal(t, []string{`$params.c: is not declared: there is a`}, told(problems))
	_, problems = read(t, strings.Replace(closed, `{"type"`, `{"additionalProperties":true,"type"`,
		1)).Check(json.RawMessage(`{"a":1,"c":3}`))
	require.Empty(t, problems)
}

func TestTextInputsStayTexts(t *testing.T) {
	in := read(t, `{"sku":"text","n":"int","size":"one of 1x | 2x","who":{"type":["string","null"]},"free":"any"}`)
	for _, tt := range [][3]string{
		{"sku", "1", `"1"`}, {"sku", `"1"`, `"1"`}, {"sku", "a b", `"a b"`}, {"n", "1", `1`}, {"n", "x", `"x"`}, {"size", "1x", `"1x"`},
		{"who", "null", `"null"`}, {"free", "1", `1`}, {"other", "true", `true`}, {"other", "x", `"x"`},
	} {
		require.Equal(t, tt[2], string(in.Text(tt[0], tt[1])), tt)
	}
}

func TestAnImpossiblePathIsReported(t *testing.T) {
	in := read(t, `{"amount":"int","to":{"fields":{"zip":"text"}},"rows":[{"fields":{"n":"int"}}],"free":"object","x":"any"}`)
	for path, want := range map[string]string{
		"amount": "", "to.zip": "", "rows.[0].n": "", "free.any.thing": "", "x.[0].y": "", "to": "",
		"amuont":     "amuont is not declared among the inputs: did you mean amount?",
		"customer":   "customer is not declared among the inputs: there is amount, to, rows, free, x",
		"to.zpi":     "zpi is not declared among the input to: did you mean zip?",
		"amount.x":   "there is no x in the input amount, which is declared as an int",
		"rows.[0].m": "m is not declared among the input rows[0]: there is n",
	} {
		require.Equal(t, want, in.Reaches(strings.Split(path, ".")), path)
	}
}

func TestAHostileSchemaCostsNoMoreThanItsBudget(t *testing.T) {
	doubling := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 40 {
		next := string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10))
		this := string(rune('0'+i/10)) + string(rune('0'+i%10))
		doubling += `"d` + this + `":{"allOf":[{"$ref":"#/$defs/d` + next + `"},{"$ref":"#/$defs/d` + next + `"}]},`
	}
	doubling = strings.Replace(doubling, "#/$defs/d0\"", "#/$defs/d00\"", 1) + `"d40":{"default":1,"properties":{"q":{"default":1}}}}}`
	in := read(t, doubling)
	_, problems := in.Check(json.RawMessage(`{"a":{}}`))
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Msg, "takes")

	deep := read(t,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/t"},{"$ref":"#/$defs/t"}]}},"required":["z"]}}}`)
	_, problems = deep.Check(json.RawMessage(strings.Repeat(`{"a":`, 900) + `1` + strings.Repeat(`}`, 900)))
	require.NotEmpty(t, problems)

	huge := read(t, `{"a":{"type":"number","min":1,"multipleOf":0.01},"b":"optional int"}`)
	_, problems = huge.Check(json.RawMessage(`{"a":1e2000000,"b":1e999999999999999999999}`))
	require.Equal(t, []string{`$params.a: is a number of more than 400 digits, a multiple of 0.01 was declared`}, told(problems))
}

func TestInputsAreShownAsShortFormsHaveThem(t *testing.T) {
	in := read(t,
		`{"a":"one of x | y = x","b":"optional text (why)","c":"text = a (b)","d":"list of int = [1]","e":{"choices":["a|b",""]},"f":"text =","g":{"type":["integer","null"],"default":null},
		"h":{"$ref":"#/properties/a"}}`)
	var shown []string
	for _, input := range in.List() {
		shown = append(shown, input.String())
	}
	require.Equal(t, []string{`a: one of x | y = x`, `b: optional text (why)`, `c: text = a (b)`,
		`d: list of int = [1]`, `e: one of "a|b" | ""`, `f: text = ""`,
		`g: int or null = null`, `h: one of x | y`}, shown)
}

func TestInvalidInputsStillHaveNames(t *testing.T) {
	in := types.Named(json.RawMessage(`{"amount":"itn"}`))
	require.Empty(t, in.Reaches([]string{"amount", "x"}))
	require.Equal(t, "amuont is not declared among the inputs: did you mean amount?", in.Reaches([]string{"amuont"}))
	require.Nil(t, types.Named(json.RawMessage(`[]`)))
}
