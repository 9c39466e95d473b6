package expr

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPath(t *testing.T) {
	v := json.RawMessage(`{"a":{"b":[0,1,{"c":"x"}],"1":"key"},"l":[[7,8],9],"d.e":1,"[0]":2,"":3,"n":null,"s":"text"}`)
	for path, want := range map[string]string{
		"a.b[2].c":                     `"x"`,
		"a.b[0]":                       "0",
		"a.b[02].c":                    `"x"`,
		"":                             string(v),
		"...":                          string(v),
		"..a..b[1].":                   "1",
		"a.b.1":                        "null", // a number is not an index of an array
		"a.1":                          `"key"`,
		"l[0]":                         "[7,8]",
		"l[0][1]":                      "[7,8]", // one index per segment
		"l[0].1":                       "null",
		"[0]":                          "null", // a path cannot start with an index
		"l.[0]":                        "null",
		"d.e":                          "null", // keys with dots cannot be reached
		"n":                            "null",
		"n.x":                          "null",
		"none":                         "null",
		"s.x":                          "null",
		"s[0]":                         "null",
		"a[0]":                         "null",
		"a.b[3]":                       "null",
		"a.b[-1]":                      "null",
		"a.b[+1]":                      "null",
		"a.b[x]":                       "null",
		"a.b[]":                        "null",
		"a.b[":                         "null",
		"a.b[1":                        "null",
		"a.b[1_0]":                     "null",
		"a.b[99999999999999999999999]": "null",
	} {
		t.Run(path, func(t *testing.T) {
			require.Equal(t, want, string(Path(v, path)))
		})
	}
	require.Equal(t, "null", string(Path(nil, "")))
}

func TestPathsAreBounded(t *testing.T) {
	deep := json.RawMessage(strings.Repeat(`{"a":`, maxSegments+1) + "1" + strings.Repeat(`}`, maxSegments+1))
	require.Equal(t, `{"a":1}`, string(Path(deep, strings.Repeat("a.", maxSegments))))
	require.Equal(t, "null", string(Path(deep, strings.Repeat("a.", maxSegments+1))))
	require.Equal(t, "1", string(Path(Path(deep, "a"), strings.Repeat("a.", maxSegments))))
}

func testEnv() *Env {
	shared := map[string]json.RawMessage{
		"s": json.RawMessage(`{"t":[1,{"u":2}]}`),
		"l": json.RawMessage(`[4,5]`),
		"z": json.RawMessage(`null`),
	}
	return &Env{
		Params: json.RawMessage(`{"n":5,"flag":true,"o":{"b":1,"a":[1,2]},"big":9007199254740993}`),
		Input:  json.RawMessage(`{"foo":1,"l":[2,3]}`),
		Shared: func(key string) (json.RawMessage, bool) { v, ok := shared[key]; return v, ok },
		SharedAll: func() json.RawMessage {
			all := json.RawMessage(`{}`)
			for _, key := range slices.Sorted(maps.Keys(shared)) {
				all = Merge(all, joinMembers([]Member{{key, shared[key]}}, 0))
			}
			return all
		},
	}
}

func TestResolve(t *testing.T) {
	env := testEnv()
	for text, want := range map[string]string{
		"$params.n":        "5",
		"$params.big":      "9007199254740993",
		"$params.o.a[1]":   "2",
		"$params.":         string(env.Params),
		"$params..":        string(env.Params),
		"$params.none":     "null",
		"$params.[0]":      "null",
		"$shared.s.t[1].u": "2",
		"$shared.l[1]":     "5",
		"$shared.l[2]":     "null",
		"$shared..l":       "[4,5]",
		"$shared.z":        "null",
		"$shared.none":     "null",
		"$shared.none.x":   "null",
		"$shared.l[x]":     "null",
		"$shared.":         `{"l":[4,5],"s":{"t":[1,{"u":2}]},"z":null}`,
		"$input":           string(env.Input),
		"$input.":          string(env.Input),
		"$input.foo":       "1",
		"$inputfoo":        "1",
		"$input.l[0]":      "2",
		"$input[0]":        "null",
		"$params":          `"$params"`,
		"$shared":          `"$shared"`,
		"$paramsn":         `"$paramsn"`,
		"$":                `"$"`,
		"$other.x":         `"$other.x"`,
		" $params.n":       `" $params.n"`,
		"$Params.n":        `"$Params.n"`,
		"plain <text>\n":   `"plain <text>\n"`,
		"":                 `""`,
	} {
		t.Run(text, func(t *testing.T) {
			r := ParseRef(text)
			require.Equal(t, text, r.Text())
			require.Equal(t, want, string(r.Resolve(env)))
			require.Equal(t, want == string(Quote(text)), r.Literal())
		})
	}
}

func TestResolveWithoutShared(t *testing.T) {
	for name, env := range map[string]*Env{"no environment": nil, "an empty one": {}} {
		for _, text := range []string{"$params.", "$params.a", "$shared.", "$shared.a", "$input", "$input.a"} {
			require.Equal(t, "null", string(ParseRef(text).Resolve(env)), "%s, %s", name, text)
		}
	}
	whole := &Env{SharedAll: func() json.RawMessage { return json.RawMessage(`{"a":[7]}`) }}
	require.Equal(t, "7", string(ParseRef("$shared.a[0]").Resolve(whole)))
	require.Equal(t, `""`, string(Ref{}.Resolve(nil)))
}
