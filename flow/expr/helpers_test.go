package expr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// decode reads v like encoding/json, but keeps numbers as written.
func decode(v []byte) any {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return fmt.Errorf("not JSON: %q", v)
	}
	return out
}

// reencode returns the text of encoding/json for a decoded value.
func reencode(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func decodeObject(v []byte) map[string]any {
	object, _ := decode(v).(map[string]any)
	return object
}

// text draws JSON in unusual spellings: odd spacing, escapes, repeated keys.
func text(t *rapid.T, depth int) string {
	pad := func(s string) string { return space(t) + s + space(t) }
	most := 5
	if depth == 0 {
		most = 3
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0:
		return pad(rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word"))
	case 1:
		return pad(rapid.SampledFrom([]string{"0", "-0", "5", "5.0", "1e1", "-2.5E-3",
			"9007199254740993", "1000000", "123456789012345678901234567890"}).Draw(t, "number"))
	case 2, 3:
		return pad(quoted(t))
	case 4:
		return pad("[" + strings.Join(list(t, func() string { return text(t, depth-1) }), ",") + space(t) + "]")
	default:
		return pad(objectText(t, depth))
	}
}

func objectText(t *rapid.T, depth int) string {
	members := list(t, func() string { return space(t) + quoted(t) + space(t) + ":" + text(t, depth-1) })
	return "{" + strings.Join(members, ",") + space(t) + "}"
}

func list(t *rapid.T, draw func() string) []string {
	out := make([]string, rapid.IntRange(0, 4).Draw(t, "length"))
	for i := range out {
		out[i] = draw()
	}
	return out
}

func space(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r "}).Draw(t, "space")
}

var someKeys = []string{"a", "b", "ab", "é", `"`, `\`, `a"b`, "<", "\n", "", "😀", "a.b", "5"}

func quoted(t *rapid.T) string {
	s := rapid.OneOf(rapid.SampledFrom(someKeys), rapid.String()).Draw(t, "string")
	switch rapid.IntRange(0, 2).Draw(t, "spelling") {
	case 0:
		return string(Quote(s))
	case 1:
		return reencode(s)
	}
	out := `"`
	for _, r := range s { // everything is escaped, including surrogate pairs
		if r > 0xffff {
			r -= 0x10000
			out += fmt.Sprintf(`\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			continue
		}
		out += fmt.Sprintf(`\u%04x`, r)
	}
	return out + `"`
}

// holdsIn evaluates a condition that needs little budget, and treats missing values as null.
func holdsIn(t require.TestingT, c *Cond, env *Env) bool {
	coercing := &Env{Coerce: true, Loose: true}
	if env != nil {
		*coercing = *env
		coercing.Coerce = true
	}
	holds, err := c.Eval(coercing)
	require.NoError(t, err)
	return holds
}
