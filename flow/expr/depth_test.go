package expr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeeperCountsLevelsOfArraysAndObjects(t *testing.T) {
	for v, depth := range map[string]int{
		``: 0, `1`: 0, `"[[[[[["`: 0, `"\"[[[[["`: 0, `[]`: 1, `{}`: 1, `[[],[],[],[],[]]`: 2,
		`{"a":[{"b":"]]]"}]}`: 3, `[{"[[[[[[[":[]}]`: 3,
		` [ [ [ 1 ] ] , 2 ] `: 3, `{"a\\":[1]}`: 2,
		strings.Repeat(`[`, 1000) + strings.Repeat(`]`, 1000):           1000,
		strings.Repeat(`{"a":`, 1000) + `1` + strings.Repeat(`}`, 1000): 1000,
	} {
		require.False(t, Deeper([]byte(v), depth), v)
		if depth > 0 {
			require.True(t, Deeper([]byte(v), depth-1), v)
		}
	}
}

// deepest returns the depth of a value, found by decoding it.
func deepest(v []byte) int {
	deep := 0
	elements, isArray := Elements(v)
	members, isObject := Members(v)
	if !isArray && !isObject {
		return 0
	}
	for _, e := range elements {
		deep = max(deep, deepest(e))
	}
	for _, m := range members {
		deep = max(deep, deepest(m.Value))
	}
	return deep + 1
}

func FuzzDeeper(f *testing.F) {
	for _, v := range []string{`[[1,"]"],{"a\"[":{}}]`, `{"a":[[[]]]}`, `"["`, ` [ { } ] `} {
		f.Add([]byte(v), 1)
	}
	f.Fuzz(func(t *testing.T, v []byte, levels int) {
		if !Valid(v) || levels < 0 || len(v) > 10_000 {
			return
		}
		require.Equal(t, deepest(v) > levels, Deeper(v, levels))
	})
}
