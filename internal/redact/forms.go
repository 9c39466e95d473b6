package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
)

// secretForms are the texts to search for. The value reports whether line breaks may occur anywhere
// in the text.
type secretForms map[string]bool

// addValue adds a value and all its encoded forms that would reveal the value.
func (f secretForms) addValue(v string) {
	if v = strings.TrimRight(v, "\r\n"); len(v) < Least {
		return
	}
	f.addWritten(v)
	if strings.Contains(v, "\n") {
		for line := range strings.Lines(v) {
			f.addPart(strings.TrimSpace(line))
		}
	}
	var inside any
	if json.Unmarshal([]byte(v), &inside) == nil {
		f.addNested(inside)
	}
}

// addNested adds the strings inside a JSON value.
func (f secretForms) addNested(v any) {
	switch v := v.(type) {
	case string:
		if len(v) >= Part {
			f.addValue(v)
		}
	case []any:
		for _, e := range v {
			f.addNested(e)
		}
	case map[string]any:
		for _, e := range v {
			f.addNested(e)
		}
	}
}

// addPart adds a part of a value, if it is long enough.
func (f secretForms) addPart(text string) {
	if len(text) >= Part {
		f.addWritten(text)
	}
}

// addWritten adds a text and its encoded forms.
func (f secretForms) addWritten(text string) {
	f.addForm(text, false)
	for _, other := range append(inJSON(text), inURLs(text)...) {
		if len(other) >= Part {
			f.addForm(other, false)
		}
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			if core := base64Core(encoding, text, before); len(core) >= Part {
				f.addForm(core, true)
			}
		}
	}
}

func (f secretForms) addForm(text string, wraps bool) { f[text] = f[text] || wraps }

// inJSON returns the ways to write a text in JSON, without the quotation marks. The characters <, >
// and &, the slash, and all non-ASCII characters may be escaped, with lower-case or upper-case hex
// digits.
func inJSON(text string) (all []string) {
	for _, html := range []bool{true, false} {
		plain := jsonEscape(text, html)
		for _, one := range []string{plain, asciiEscape(plain)} {
			capital := capitalDigits(one)
			all = append(all, one, capital, strings.ReplaceAll(one, "/", `\/`), strings.ReplaceAll(capital, "/", `\/`))
		}
	}
	return all
}

// urlSafeBytes lists, per encoding, the bytes that a URL leaves unescaped besides letters and
// digits: RFC 3986, paths, HTML forms, and JavaScript's encodeURIComponent, path segments and
// encodeURI.
var urlSafeBytes = []string{"-_.~", "-_.~/", "-_.*", "-_.!~*'()", "-_.~$&+:=@", "-_.!~*'();/?:@&=+$,#"}

// inURLs returns the ways to write a text in a URL.
func inURLs(text string) (all []string) {
	for _, bytes := range urlSafeBytes {
		for _, space := range []string{"%20", "+"} {
			all = append(all, percentEncode(text, bytes, space, "0123456789ABCDEF"), percentEncode(text, bytes, space, "0123456789abcdef"))
		}
	}
	return all
}

// percentEncode returns a text with all bytes percent-encoded, except letters, digits and the bytes
// in but.
func percentEncode(text, but, space, digits string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c == ' ':
			b.WriteString(space)
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', strings.IndexByte(but, c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// jsonEscape returns a text as JSON without the quotation marks.
func jsonEscape(text string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(text) // encoding a string cannot fail
	s := strings.TrimSuffix(b.String(), "\n")
	return s[1 : len(s)-1]
}

// asciiEscape returns JSON text with all non-ASCII characters escaped.
func asciiEscape(text string) string {
	var b strings.Builder
	for _, r := range text {
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

// capitalDigits returns JSON text with upper-case hex digits in its escapes.
func capitalDigits(text string) string {
	b := []byte(text)
	for i := 0; i+1 < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		if i++; b[i] == 'u' {
			copy(b[i+1:], bytes.ToUpper(b[i+1:min(i+5, len(b))]))
		}
	}
	return string(b)
}

// base64Core returns the base64 digits that depend on the text alone, if before bytes (modulo 3)
// precede it. The digits at both ends also depend on the neighboring bytes.
func base64Core(encoding *base64.Encoding, text string, before int) string {
	s := encoding.EncodeToString(append(make([]byte, before), text...))
	s = s[(before*4+2)/3:]
	if (before+len(text))%3 != 0 {
		s = s[:len(s)-1]
	}
	return s
}
