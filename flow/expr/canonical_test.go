package expr_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/expr"
)

func TestSpellingsOfOneValueHaveOneCanonicalText(t *testing.T) {
	for _, same := range [][]string{
		{`{"a":1,"b":[1,2]}`, `{ "b" : [1.0, 2e0], "a": 10e-1 }`, `{"a":0,"a":1,"b":[1,2]}`},
		{`100`, `1e2`, `100.0`, `1E+2`, `0.1e3`},
		{`0`, `-0`, `0.0`, `0e9`},
		{`"é\n"`, `"\u00e9\u000a"`},
		{`12345678901234567890`, `12345678901234567890.0`, `1234567890123456789e1`},
	} {
		for _, text := range same {
			require.Equal(t, string(expr.Canonical(json.RawMessage(same[0]))), string(expr.Canonical(json.RawMessage(text))), text)
		}
	}
	others := []string{`1`, `"1"`, `true`, `false`, `null`, `[]`, `{}`, `[1,2]`, `[2,1]`, `[[1],2]`,
		`[12]`, `9007199254740993`, `9007199254740992`, `12345678901234567890`, `12345678901234567891`,
		`1e2000000`, `1e2000001`, `0.1`, `-1`, `"\ud800"`, `"\ud801"`, `"\ufffd"`, `{"\ud800":1}`,
		`{"\ud801":1}`, `"\\ud800"`, `{"a":1}`, `{"a":"1"}`, `{"a":1,"b":1}`, ``, `x`}
	texts := map[string]string{}
	for _, text := range others {
		canonical := string(expr.Canonical(json.RawMessage(text)))
		require.Empty(t, texts[canonical], "%s has the text of %s", text, texts[canonical])
		texts[canonical] = text + " "
	}
}
