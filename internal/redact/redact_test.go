package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/redact"
)

const value = `p&ss "wörd"/42`

func TestValuesAreHidden(t *testing.T) {
	quoted, err := json.Marshal(value)
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		values     []string
		said, want string
	}{
		"a value":                    {[]string{value}, "a " + value + " b", "a *** b"},
		"twice":                      {[]string{value}, value + value, "******"},
		"nothing":                    {nil, value, value},
		"a short one is not":         {[]string{"abc"}, "abc", "abc"},
		"the end of the last line":   {[]string{"hidden\n"}, "hidden", "***"},
		"several":                    {[]string{"first one", "second"}, "first one, second", "***, ***"},
		"one inside of another":      {[]string{"abcd", "xxabcdyy"}, "xxabcdyy abcd", "*** ***"},
		"some that overlap":          {[]string{"abcdef", "defghi"}, "-abcdefghi-", "-***-"},
		"one that overlaps itself":   {[]string{"abab"}, "-ababab-", "-***-"},
		"as JSON":                    {[]string{value}, string(quoted), `"***"`},
		"as JSON of ASCII":           {[]string{value}, `{"a":"p&ss \"w\u00f6rd\"/42"}`, `{"a":"***"}`},
		"as JSON of others":          {[]string{value}, `{"a":"p\u0026ss \"w\u00F6rd\"\/42"}`, `{"a":"***"}`},
		"in a URL":                   {[]string{value}, "?q=" + url.QueryEscape(value), "?q=***"},
		"in a part of a URL":         {[]string{value}, "?q=p%26ss%20%22w%C3%B6rd%22%2F42", "?q=***"},
		"in a path of a URL":         {[]string{value}, "/p%26ss%20%22w%C3%B6rd%22/42", "/***"},
		"in a URL, in small letters": {[]string{value}, "?q=p%26ss+%22w%c3%b6rd%22%2f42", "?q=***"},
		"with marks in a URL":        {[]string{"it's (so)!"}, "?q=it's%20(so)!", "?q=***"},
		"a line of one":              {[]string{"first line\nsecond line"}, "says: second line", "says: ***"},
		"a short line is not":        {[]string{"{\nmore of it\n}"}, "{ more of it }", "{ *** }"},
		"with other ends of lines": {[]string{"first line\nsecond line"},
			"first line\r\nsecond line", "***\r\n***"},
		"a text inside of JSON": {[]string{`{"user": "me", "key": ["long enough"]}`},
			`me: long enough`, "me: ***"},
		"in the header of basic auth": {[]string{"hunter2hunter2"},
			base64.StdEncoding.EncodeToString([]byte("me:hunter2hunter2")), "bWU6***I="},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, redact.New(tt.values...).Text(tt.said))
		})
	}
}

func TestBase64HidesNothingWhereverTheValueIs(t *testing.T) {
	for before := range 7 {
		for after := range 4 {
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding,
				base64.URLEncoding, base64.RawURLEncoding} {
				said := encoding.EncodeToString([]byte("0123456"[:before] + value + "xyz~"[:after]))
				hidden := redact.New(value).Text(said)
				require.Contains(t, hidden, redact.Mask, said)
				require.LessOrEqual(t, len(hidden), (before+after)*2+len(redact.Mask)+6, "hardly more than what is around it: %s", hidden)
			}
		}
	}
}

// Encoders of base64 insert line breaks.
func TestBase64OfSeveralLinesIsHidden(t *testing.T) {
	long := strings.Repeat("a long value, ", 12)
	for _, wide := range []int{64, 76} {
		for before := range 80 {
			var said strings.Builder
			for i, c := range []byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", before) + long))) {
				if i > 0 && i%wide == 0 {
					said.WriteString("\r\n"[before%2:])
				}
				said.WriteByte(c)
			}
			hidden := redact.New(long).Text(said.String())
			require.LessOrEqual(t, len(hidden), before*2+10, "%d before in lines of %d: %s", before, wide, hidden)
		}
	}
}

// The division into writes does not change the output, and no part of a value gets through.
func TestPiecesAreHiddenAsTheWhole(t *testing.T) {
	values := []string{"aaaa", "abcabcabd", "first line\nsecond", "bcab"}
	r := redact.New(values...)
	parts := append([]string{"a", "b", "\n", "abcabc", "first line", "x", "Zmlyc3Qg\nbGluZQpzZ", "bGluZQpzZ\r\nWNvbmQ="}, values...)
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var said strings.Builder
		for range rng.IntN(20) {
			said.WriteString(parts[rng.IntN(len(parts))])
		}
		whole := r.Text(said.String())
		for _, v := range values {
			require.NotContains(t, whole, v, "seed %d", seed)
		}
		var got bytes.Buffer
		w := r.Writer(&got)
		for text := said.String(); text != ""; {
			n := min(1+rng.IntN(5), len(text))
			_, err := w.Write([]byte(text[:n]))
			require.NoError(t, err)
			text = text[n:]
		}
		require.NoError(t, w.Close())
		require.Equal(t, whole, got.String(), "seed %d: %q", seed, said.String())
	}
}

func TestAWriterHoldsBackOnlyWhatMayBeAValue(t *testing.T) {
	var got bytes.Buffer
	w := redact.New("secret value").Writer(&got)
	for said, want := range map[string]string{"ready? ": "ready? "} {
		_, err := w.Write([]byte(said))
		require.NoError(t, err)
		require.Equal(t, want, got.String())
	}
	_, err := w.Write([]byte("sec"))
	require.NoError(t, err)
	require.Equal(t, "ready? ", got.String())
	_, err = w.Write([]byte("ond"))
	require.NoError(t, err)
	require.Equal(t, "ready? second", got.String())
}

func TestJSONStaysJSON(t *testing.T) {
	r := redact.New(value, "123456")
	for said, want := range map[string]string{
		`{"a": "x", "b": [1.5, true, null]}`:                   `{"a": "x", "b": [1.5, true, null]}`,
		`{"a": "- p&ss \"w\u00f6rd\"\/42 -", "b\"": "\u0070"}`: `{"a": "- *** -", "b\"": "\u0070"}`,
		`[123456, -91234567.0, 12345]`:                         `["***", "***", 12345]`,
		`{"123456": "12345\u0036"}`:                            `{"***": "***"}`,
		`"123456"`:                                             `"***"`,
		``:                                                     ``,
	} {
		got := r.JSON(json.RawMessage(said))
		require.Equal(t, want, string(got))
		require.True(t, said == "" || json.Valid(got))
	}
	var none *redact.Redactor
	require.Equal(t, "123456", string(none.JSON(json.RawMessage("123456"))))
}

// FuzzJSON checks that the result is valid JSON and that no string in it contains the secret.
func FuzzJSON(f *testing.F) {
	f.Add(`{"a":"hunter22","b":[1,"x\"hunter22\\"]}`, "hunter22")
	f.Add(`"\ud800hunter22"`, "hunter22")
	f.Fuzz(func(t *testing.T, text, secret string) {
		if !json.Valid([]byte(text)) || len(strings.TrimRight(secret, "\r\n")) < redact.Least || strings.ContainsRune(secret, '*') {
			return
		}
		got := redact.New(secret).JSON(json.RawMessage(text))
		require.True(t, json.Valid(got), "%s", got)
	})
}

func BenchmarkWriter(b *testing.B) {
	for name, value := range map[string]string{"a token": "a-token-of-some-length-0123456789", "64 KiB of certificates": certificates()} {
		b.Run(name, func(b *testing.B) { write(b, redact.New(value)) })
	}
}

// certificates returns a secret of the maximal size with a thousand lines.
func certificates() string {
	rng := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	for b.Len() < 64<<10 {
		line := make([]byte, 48)
		for i := range line {
			line[i] = byte(rng.Uint32())
		}
		b.WriteString(base64.StdEncoding.EncodeToString(line) + "\n")
	}
	return b.String()
}

func write(b *testing.B, r *redact.Redactor) {
	var out bytes.Buffer
	chunk := bytes.Repeat([]byte("2026-01-02T03:04:05 INFO a line as programs print it\n"), 600)
	w := r.Writer(&out)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		out.Reset()
		_, _ = w.Write(chunk)
	}
}
