package types

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/expr"
)

func TestTypesWithoutListsAreExcluded(t *testing.T) {
	in, problems := Read(json.RawMessage(`{"n":"int","list":"list of text","text":"optional ` +
		`text","choice":"one of a | b","o":{"type":"object","fields":{"rows":"list of int","n":"int"}}}`))
	require.Empty(t, problems)
	for _, tt := range []struct {
		path     []string
		excluded string
	}{
		{[]string{"n"}, "int"},
		{[]string{"list"}, ""},
		{[]string{"list", "[0]"}, "text"},
		{[]string{"text"}, "text"},
		{[]string{"choice"}, `one of "a", "b"`},
		{[]string{"o"}, "object"},
		{[]string{"o", "rows"}, ""},
		{[]string{"o", "n"}, "int"},
		{[]string{"unknown"}, ""},
		{nil, "object"},
	} {
		declared, excluded := in.Excludes(tt.path, expr.KindArray)
		require.Equal(t, tt.excluded != "", excluded, "%v", tt.path)
		require.Contains(t, declared, tt.excluded, "%v", tt.path)
	}
}

func TestASchemaOfAlternativesMayHoldAListInOneOfThem(t *testing.T) {
	in, problems := Read(json.RawMessage(
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"array"},{"type":"string"}]},"b":{"oneOf":[{"type":"integer"},{"type":"string"}]},"c":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"number"}}}`))
	require.Empty(t, problems)
	for name, want := range map[string]bool{"a": false, "b": true, "c": true} {
		_, excluded := in.Excludes([]string{name}, expr.KindArray)
		require.Equal(t, want, excluded, name)
	}
}
