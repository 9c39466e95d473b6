package flow_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// sameState checks that two states are equal, except for blanks in values, which a journal does not
// keep.
func sameState(t require.TestingT, want, got *flow.State, because ...any) {
	require.Equal(t, stateText(want), stateText(got), because...)
}

// stateText returns a readable form of a state: its fields that are not zero, without derived ones.
func stateText(s *flow.State) string {
	var b strings.Builder
	writeFields(&b, reflect.ValueOf(s).Elem(), "\n")
	return b.String()
}

func writeFields(b *strings.Builder, v reflect.Value, indent string) {
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && !nothing(v.Field(i)) && !flow.Following[v.Type().Name()+"."+f.Name] {
			b.WriteString(indent + f.Name + ": ")
			writeValue(b, v.Field(i), indent+"  ")
		}
	}
}

// nothing reports whether a value is empty; an empty list counts as none.
func nothing(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

func writeValue(b *strings.Builder, v reflect.Value, indent string) {
	switch x := v.Interface().(type) {
	case json.RawMessage:
		b.Write(expr.Compact(x))
		return
	case fmt.Stringer:
		b.WriteString(x.String())
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		writeValue(b, v.Elem(), indent)
	case reflect.Struct:
		writeFields(b, v, indent)
	case reflect.Slice:
		for i := range v.Len() {
			fmt.Fprintf(b, "%s%d. ", indent, i)
			writeValue(b, v.Index(i), indent+"  ")
		}
	case reflect.Map:
		for _, key := range sortedKeys(v) {
			fmt.Fprintf(b, "%s%s = ", indent, key)
			writeValue(b, v.MapIndex(key), indent+"  ")
		}
	default:
		fmt.Fprint(b, v.Interface())
	}
}

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

func TestTheTextOfAStateIsComplete(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t,
		`{"start":"a","nodes":{"a":{"kind":"foreach","service":"x","exec_type":"queue","prep":{"input_key":"$params.list"}}}}`))
	_, err := tb.do(flow.Start{Params: json.RawMessage(`{"list":[7,8]}`)})
	require.NoError(t, err)
	text := stateText(tb.state)
	for _, part := range []string{"\nStatus: running", "\n  Cursor: a",
		"\n    Units: \n      0. \n        Status: dispatched", "a = 1", `Input: [7,8]`} {
		require.Contains(t, text, part)
	}
}
