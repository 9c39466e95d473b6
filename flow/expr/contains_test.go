package expr

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestContains(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{`{"run":{"plan":"p","n":1}}`, `{"run":{"plan":"p"}}`}: true,
		{`{"run":{"plan":"q"}}`, `{"run":{"plan":"p"}}`}:       false,
		{`{"run":{}}`, `{"run":{"plan":null}}`}:                false,
		{`{"a":null}`, `{"a":null}`}:                           true,
		{`{"a":[1]}`, `{"a":{}}`}:                              false,
		{`{"a":{"b":1}}`, `{"a":{}}`}:                          true,
		{`{"a":["x"]}`, `{"a":"x"}`}:                           false,
		{`{"a":["x","y"]}`, `{"a":["y","y"]}`}:                 true,
		{`{"a":"x"}`, `{"a":["x"]}`}:                           false,
		{`{"a":1,"a":2}`, `{"a":1}`}:                           false,
		{`{"a":1,"\u0061":2}`, `{"a":2.0}`}:                    true,
		{`{"a":2}`, `{"a":1,"a":2}`}:                           true,
		{`[1]`, `{}`}:                                          false,
		{`["foo","bar"]`, `"bar"`}:                             true,
		{`[["bar"]]`, `["bar"]`}:                               false,
		{`[["foo","bar"]]`, `[["bar"],"foo"]`}:                 false,
		{`[["foo","bar"],"foo"]`, `[["bar"],"foo"]`}:           true,
		{`[[[1,2]]]`, `[[1]]`}:                                 false,
		{`"bar"`, `["bar"]`}:                                   false,
		{`1`, `[]`}:                                            false,
		{`[]`, `[]`}:                                           true,
		{`{}`, `[]`}:                                           false,
		{`{"a":1}`, `"a"`}:                                     false,
		{` 1.0 `, `1e0`}:                                       true,
		{`-0.0`, `0e5`}:                                        true,
		{`-1`, `1`}:                                            false,
		{`9007199254740993`, `9007199254740992`}:               false,
		{`123456789012345678901234567890`, `12345678901234567890123456789e1`}: true,
		{`1e400`, `10e399`}:     true,
		{`1e400`, `1e401`}:      false,
		{`0.00120`, `12e-4`}:    true,
		{`"5"`, `5`}:            false,
		{`false`, `null`}:       false,
		{`"\u00e9\n"`, `"é\n"`}: true,
		{`1e10000000000000000000`, `10e9999999999999999999`}: false, // compared by their spelling
		{`1e99999999999999999999`, `1e99999999999999999999`}: true,
		{``, `null`}: true,
	} {
		require.Equal(t, want, Contains(json.RawMessage(pair[0]), json.RawMessage(pair[1])), "%s @> %s", pair[0], pair[1])
	}
}

func TestContainsStopsAtTheDepthOfPatterns(t *testing.T) {
	nested := func(depth int) json.RawMessage {
		return json.RawMessage(strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth))
	}
	require.True(t, Contains(nested(100), nested(100)))
	require.False(t, Contains(nested(101), nested(101)))
	require.False(t, Contains(nested(5_000), nested(5_000)))
}

func TestParsePatternReportsProblems(t *testing.T) {
	for pattern, want := range map[string]string{
		`{"a":[1,{"b":"},{["}]}`: "",
		`[1]`:                    `a pattern is an object, such as {"run": {"plan": "free"}}`,
		`{"a":`:                  "the pattern is not valid JSON",
		`{"a":[1` + strings.Repeat(`,1`, 1_000) + `]}`: "the pattern has 1003 values, more than 1000",
		`{"a":[[]` + strings.Repeat(`,{}`, 16) +
			`]}`: "the pattern has 17 arrays and objects inside of arrays, more than 16",
		strings.Repeat(`{"a":`, 101) + `{}` + strings.Repeat("}", 101):      "the pattern nests deeper than 100",
		`{"a":` + strings.Repeat(`[`, 100) + strings.Repeat("]", 100) + `}`: "the pattern nests deeper than 100",
	} {
		p, problems := ParsePattern(json.RawMessage(pattern))
		if want == "" {
			require.Empty(t, problems)
			require.True(t, p.In(json.RawMessage(pattern)))
			continue
		}
		require.NotEmpty(t, problems)
		require.Equal(t, Problem{"", want}, problems[0])
	}
}

// TestContainsAgreesWithPostgres compares the result with a real server for documents drawn from a
// seed. Patterns are mostly made from their documents, so that many are contained.
func TestContainsAgreesWithPostgres(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.DSN(t))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	values, patterns := make([]string, 20_000), make([]string, 20_000)
	d := drawer{rand.New(rand.NewPCG(1, 2))}
	for i := range values {
		v := d.value(3)
		values[i], patterns[i] = d.spell(v), d.spell(d.pattern(v))
	}
	rows, err := conn.Query(t.Context(), `SELECT v::jsonb @> p::jsonb FROM unnest($1::text[], `+
		`$2::text[]) WITH ORDINALITY u(v, p, i) ORDER BY i`, values, patterns)
	require.NoError(t, err)
	answers, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	require.NoError(t, err)
	require.Len(t, answers, len(values))
	held := 0
	for i, want := range answers {
		require.Equal(t, want, Contains(json.RawMessage(values[i]), json.RawMessage(patterns[i])), "%s @> %s", values[i], patterns[i])
		if want {
			held++
		}
	}
	require.Greater(t, held, len(answers)/4)
	require.Less(t, held, len(answers)*3/4)
}

// drawer draws documents. A number is a json.Number, an object a list of pairs, because keys may
// repeat.
type drawer struct{ *rand.Rand }

type pair struct {
	key   string
	value any
}

func (d drawer) value(depth int) any {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch d.IntN(kinds) {
	case 0:
		return []any{nil, true, false}[d.IntN(3)]
	case 1, 2:
		return json.Number([]string{"0", "-0", "1", "-1", "12", "1200", "0.5", "9007199254740993",
			"9007199254740992", "1e400", "-1e-30", "123456789012345678901234567890"}[d.IntN(12)])
	case 3:
		return d.word()
	case 4:
		out := make([]any, d.IntN(5))
		for i := range out {
			out[i] = d.value(depth - 1)
		}
		return out
	}
	out := make([]pair, d.IntN(5))
	for i := range out {
		out[i] = pair{d.word(), d.value(depth - 1)}
	}
	return out
}

func (d drawer) word() string {
	return []string{"a", "b", "ab", "", "é", "\"\\\n", "😀", "5"}[d.IntN(8)]
}

// pattern omits, repeats and shuffles parts of a value, and sometimes changes one.
func (d drawer) pattern(v any) any {
	if d.IntN(6) == 0 {
		return d.value(2)
	}
	switch v := v.(type) {
	case []any:
		if len(v) > 0 && d.IntN(10) == 0 {
			return v[d.IntN(len(v))]
		}
		out := []any{}
		for _, i := range d.some(len(v)) {
			out = append(out, d.pattern(v[i]))
		}
		return out
	case []pair:
		out := []pair{}
		for _, i := range d.some(len(v)) {
			out = append(out, pair{v[i].key, d.pattern(v[i].value)})
		}
		return out
	}
	return v
}

func (d drawer) some(n int) []int {
	var out []int
	for _, i := range d.Perm(n) {
		for range d.IntN(3) {
			out = append(out, i)
		}
	}
	return out
}

// spell writes a value in one of its spellings.
func (d drawer) spell(v any) string {
	pad := []string{"", "", " ", "\n"}[d.IntN(4)]
	var parts []string
	switch v := v.(type) {
	case json.Number:
		return pad + d.number(string(v)) + pad
	case string:
		return pad + d.text(v) + pad
	case []any:
		for _, e := range v {
			parts = append(parts, d.spell(e))
		}
		return pad + "[" + strings.Join(parts, ",") + "]"
	case []pair:
		for _, m := range v {
			parts = append(parts, pad+d.text(m.key)+pad+":"+d.spell(m.value))
		}
		return "{" + strings.Join(parts, ",") + pad + "}" + pad
	}
	return reencode(v) + pad
}

func (d drawer) number(n string) string {
	switch {
	case strings.ContainsAny(n, "e."):
		return n
	case strings.HasSuffix(n, "0") && len(n) < 3:
		return []string{n, n + ".00", n + "e7"}[d.IntN(3)]
	}
	return []string{n, n + ".0", n + "e0", n + "0E-1", n + ".00e+00", n + "000e-3"}[d.IntN(6)]
}

func (d drawer) text(s string) string {
	if d.IntN(3) > 0 || strings.ContainsRune(s, '😀') {
		return string(Quote(s))
	}
	out := ""
	for _, r := range s {
		out += fmt.Sprintf(`\u%04x`, r)
	}
	return `"` + out + `"`
}

func FuzzContains(f *testing.F) {
	for _, v := range someValues {
		for _, p := range someValues {
			f.Add([]byte(v), []byte(p))
		}
	}
	f.Fuzz(func(t *testing.T, v, p []byte) {
		got := Contains(v, p)
		if Valid(v) && Valid(p) && got {
			require.True(t, Contains(Compact(v), Compact(p)))
		}
		if _, problems := ParsePattern(p); len(problems) == 0 {
			require.True(t, Contains(p, p), "%s", p)
		}
	})
}

func BenchmarkContains(b *testing.B) {
	pattern, _ := ParsePattern(json.RawMessage(`{"customer":{"name":"Ada","tags":["c"]},"items":[{"sku":"x-2"}]}`))
	b.SetBytes(int64(len(order)))
	b.ReportAllocs()
	for b.Loop() {
		pattern.In(order)
	}
}

// The worst case within the limits: every array of a pattern is compared with every one of a large
// value.
func BenchmarkContainsAtWorst(b *testing.B) {
	value := json.RawMessage(`{"a":[` + strings.Repeat("[0],", 1<<18-1) + "[1]]}")
	pattern, problems := ParsePattern(json.RawMessage(`{"a":[[1]` + strings.Repeat(",[1]", maxNested-1) + "]}"))
	require.Empty(b, problems)
	for b.Loop() {
		require.True(b, pattern.In(value))
	}
}
