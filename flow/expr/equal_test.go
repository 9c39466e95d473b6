package expr_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/expr"
)

func TestEqualComparesValuesNotTexts(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[2,{"c":null}]}`, ` {"b":[2.0,{"c":null}],"a":1.00}`, true},
		{`1e2`, `100`, true},
		{`9007199254740993`, `9007199254740992`, false},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":"1"}`, `{"a":1}`, false},
		{`"\u0041"`, `"A"`, true},
		{`null`, `false`, false},
		{``, ``, true},
		{``, `null`, false},
	} {
		require.Equal(t, tt.want, expr.Equal(json.RawMessage(tt.a), json.RawMessage(tt.b)), "%s and %s", tt.a, tt.b)
	}
}
