package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
)

// forms are the texts to be looked for.
type forms map[string]bool

// value adds a value and whatever it is told by.
func (f forms) value(v string) {
	if v = strings.TrimRight(v, "\r\n"); len(v) < Least {
		return
	}
	f.written(v)
	if strings.Contains(v, "\n") {
		for line := range strings.Lines(v) {
			f.part(strings.TrimSpace(line))
		}
	}
	var inside any
	if json.Unmarshal([]byte(v), &inside) == nil {
		f.inside(inside)
	}
}

// inside adds the texts of a value that is JSON.
func (f forms) inside(v any) {
	switch v := v.(type) {
	case string:
		if len(v) >= Part {
			f.value(v)
		}
	case []any:
		for _, e := range v {
			f.inside(e)
		}
	case map[string]any:
		for _, e := range v {
			f.inside(e)
		}
	}
}

// part adds a part of a value.
func (f forms) part(text string) {
	if len(text) >= Part {
		f.written(text)
	}
}

// written adds a text, and what it becomes when it is written in another way.
func (f forms) written(text string) {
	f[text] = true
	for _, other := range []string{quoted(text, true), quoted(text, false), ascii(text), url.QueryEscape(text), url.PathEscape(text)} {
		if len(other) >= Part {
			f[other] = true
		}
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			if core := encoded(encoding, text, before); len(core) >= Part {
				f[core] = true
			}
		}
	}
}

// quoted is a text as JSON writes it, without the quotation marks.
func quoted(text string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(text) // a text always has a JSON
	s := strings.TrimSuffix(b.String(), "\n")
	return s[1 : len(s)-1]
}

// ascii is a text as JSON writes it where nothing but ASCII is wanted.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range quoted(text, false) {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			b.WriteString(`\u` + strconv.FormatInt(0x10000+int64(unit), 16)[1:])
		}
	}
	return b.String()
}

// encoded is what a text has of its own in base64 when so many bytes, modulo three, are before it: what is at its ends
// is mixed with what is around it.
func encoded(encoding *base64.Encoding, text string, before int) string {
	s := encoding.EncodeToString(append(make([]byte, before), text...))
	s = s[(before*4+2)/3:]
	if (before+len(text))%3 != 0 {
		s = s[:len(s)-1]
	}
	return s
}
