package hook

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func compiled(t *testing.T, s Settings) *Hook {
	t.Helper()
	h, err := Compile(s)
	require.NoError(t, err)
	return h
}

func given(t *testing.T, kind, body string) *Delivery {
	t.Helper()
	v, err := Body(kind, []byte(body))
	require.NoError(t, err)
	return &Delivery{Hook: "h", ID: "d", Body: v, Headers: map[string][]string{"x-a": {"1", "2"}, "authorization": {"Bearer t"}},
		Query: map[string][]string{"q": {"x"}}}
}

func TestTextsOfATemplateAreExpressions(t *testing.T) {
	h := compiled(t, Settings{Flow: "f", Params: json.RawMessage(
		`{"z": "body.a", "list": ["headers[\"x-a\"]", 1, null], "deep": {"q": "query.q + hook + ` +
			`delivery"}, "text": "'as it is'"}`)})
	a, err := h.Decide(given(t, "application/json", `{"a": {"n": 1.50}}`))
	require.NoError(t, err)
	require.Equal(t, `{"z":{"n":1.50},"list":["1, 2",1,null],"deep":{"q":"xhd"},"text":"as it is"}`, string(a.Params))
}

func TestTheBodyIsUsedWithoutATemplate(t *testing.T) {
	a, err := compiled(t, Settings{Flow: "f"}).Decide(given(t, "application/json", ` {"b": 1, "a": 2} `))
	require.NoError(t, err)
	require.Equal(t, `{"b":1,"a":2}`, string(a.Params))
	require.Equal(t, "hook/h/d", a.Key)
}

func TestCredentialsAreHiddenFromExpressions(t *testing.T) {
	h := compiled(t, Settings{Flow: "f", Params: json.RawMessage(`"headers"`)})
	a, err := h.Decide(given(t, "application/json", `{}`))
	require.NoError(t, err)
	require.Equal(t, `{"x-a":"1, 2"}`, string(a.Params))
}

func TestDeliveriesThatFailTheConditionAreIgnored(t *testing.T) {
	h := compiled(t, Settings{Flow: "f", When: "has(body.go)", Params: json.RawMessage(`"body.go"`)})
	a, err := h.Decide(given(t, "", `{}`))
	require.NoError(t, err)
	require.Equal(t, Act{Ignored: true}, a)
	a, err = h.Decide(given(t, "", `{"go": {}}`))
	require.NoError(t, err)
	require.False(t, a.Ignored)
}

func TestNamesMustBeNonEmptyScalars(t *testing.T) {
	for body, want := range map[string]string{`{"k": "a"}`: "a", `{"k": 7}`: "7", `{"k": true}`: "true"} {
		a, err := compiled(t, Settings{Flow: "f", Key: "body.k"}).Decide(given(t, "", body))
		require.NoError(t, err)
		require.Equal(t, want, a.Key)
	}
	for _, body := range []string{`{}`, `{"k": ""}`, `{"k": null}`, `{"k": {}}`, `{"k": "\u0000"}`,
		`{"k": "` + strings.Repeat("x", 501) + `"}`, `7`} {
		_, err := compiled(t, Settings{Signal: "s", Task: "body.k"}).Decide(given(t, "", body))
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(err), body)
	}
}

func TestABodyIsReadByItsContentType(t *testing.T) {
	for name, tt := range map[string]struct{ kind, body, want string }{
		"JSON":                      {"application/json; charset=utf-8", ` {"a" : 1e400} `, `{"a":1e400}`},
		"JSON of a kind":            {"application/cloudevents+json", `[1]`, `[1]`},
		"no type":                   {"", `"x"`, `"x"`},
		"a type of nonsense":        {";;", `1`, `1`},
		"nothing":                   {"application/json", ` `, `null`},
		"a form":                    {"application/x-www-form-urlencoded", `b=2&a=x+y&b=3`, `{"a":"x y","b":["2","3"]}`},
		"what curl says":            {"application/x-www-form-urlencoded", `{"a":1}`, `{"a":1}`},
		"a form with payload":       {"application/x-www-form-urlencoded", `payload=%7B%22a%22%3A1%7D`, `{"a":1}`},
		"a payload that is no JSON": {"application/x-www-form-urlencoded", `payload=x`, `{"payload":"x"}`},
		"a text":                    {"text/plain", "line\n", `"line\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := Body(tt.kind, []byte(tt.body))
			require.NoError(t, err)
			require.Equal(t, tt.want, string(v))
		})
	}
	for kind, body := range map[string]string{"application/json": `{"a":`, "text/plain": "\xff",
		"application/x-www-form-urlencoded": "%zz", "image/png": "\x89PNG"} {
		_, err := Body(kind, []byte(body))
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(err), kind)
	}
}

func TestAllProblemsOfHookSettingsAreReported(t *testing.T) {
	_, err := Compile(Settings{Scheme: "other", When: "1 +", Key: "nobody.x",
		Params: json.RawMessage(`{"a": "body."}`), Labels: map[string]string{"l": ""}})
	var problems Problems
	require.ErrorAs(t, err, &problems)
	places := []string{}
	for _, p := range problems {
		places = append(places, p.Where)
	}
	require.Equal(t, []string{"scheme", "flow", "when", "key", "labels.l", "params.a"}, places)
	require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
	_, err = Compile(Settings{Flow: "f", Params: json.RawMessage("[" + strings.Repeat(`"1",`, 300) + `"1"]`)})
	require.ErrorContains(t, err, "more than 200 expressions")
	_, err = Compile(Settings{Flow: "f", Params: json.RawMessage(strings.Repeat("[", 60) + strings.Repeat("]", 60))})
	require.ErrorContains(t, err, "nested deeper")
}

func TestADeliveryCannotKeepAMemberBusy(t *testing.T) {
	list := "[" + strings.Repeat("1,", 200_000) + "1]"
	h := compiled(t, Settings{Flow: "f", Params: json.RawMessage(`["body.all(x, body.all(y, x == y))"]`)})
	_, err := h.Decide(given(t, "", list))
	require.ErrorContains(t, err, "limit")
}
