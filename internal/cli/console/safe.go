package console

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Text from definitions and servers must not control the terminal by escape sequences, reversed
// text or forged lines. So all output for people goes through a display, which passes lines and
// tabs. Values that belong on one line are sanitized before.

// isUnsafe reports whether a character controls a terminal or the display of the text around it.
func isUnsafe(r rune) bool {
	switch {
	case unicode.IsControl(r), r == utf8.RuneError:
		return true
	case r == 0x061C, r == 0x200E, r == 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // direction
		return true
	// line separators, annotations, tags
	case r == 0x2028, r == 0x2029, r == 0xFEFF, r >= 0xFFF9 && r <= 0xFFFB, r >= 0xE0000 && r <= 0xE007F:
		return true
	}
	return false
}

// replaceUnsafe replaces an unsafe character.
func replaceUnsafe(r rune) rune {
	switch {
	case unicode.IsControl(r):
		return ' '
	case isUnsafe(r):
		return utf8.RuneError
	}
	return r
}

// SanitizeText makes untrusted text safe for a terminal, on one line.
func SanitizeText(s string) string { return strings.Map(replaceUnsafe, s) }

// outputWriter writes text for people. For a terminal, it holds the width, and whether colors may
// be used.
type outputWriter struct {
	io.Writer
	width int // 0 means unlimited
	color bool
}

// NewDisplay returns a writer for w with the properties of its terminal.
func NewDisplay(w io.Writer) outputWriter {
	d := outputWriter{Writer: w}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return d
	}
	d.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		d.width = width
	}
	return d
}

// colors holds the terminal color of each word for a state.
var colors = map[string]string{
	"completed": green, "ok": green, "online": green, "alive": green,
	"failed": red, "error": red, "timeout": red, "offline": red, "gone": red,
	"running": blue, "started": blue, "claimed": blue, "dispatched": blue,
	"pending": yellow, "canceled": yellow, "canceling": yellow, "skipped": yellow, "draining": yellow,
}

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
	plain  = "\x1b[0m"
)

// colorState colors a word for a state, also if a remark follows it. The text must be sanitized.
func (d outputWriter) colorState(text string) string {
	word, _, _ := strings.Cut(text, " (")
	if color := colors[word]; d.color && color != "" {
		return color + text + plain
	}
	return text
}

func (d outputWriter) Write(p []byte) (int, error) {
	safe := bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return replaceUnsafe(r)
	}, p)
	if _, err := d.Writer.Write(safe); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EscapeUnsafe escapes unsafe characters in the texts of JSON, so that it has the same meaning and
// is safe to print.
func EscapeUnsafe(doc []byte) []byte {
	if bytes.IndexFunc(doc, unsafeInJSON) < 0 {
		return doc
	}
	var b bytes.Buffer
	for len(doc) > 0 {
		r, size := utf8.DecodeRune(doc)
		switch {
		case !unsafeInJSON(r):
			b.Write(doc[:size])
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		doc = doc[size:]
	}
	return b.Bytes()
}

// unsafeInJSON reports whether a character of JSON must be escaped. Outside of texts JSON has only
// harmless line breaks and tabs, and inside no characters below a space.
func unsafeInJSON(r rune) bool { return r >= ' ' && r != utf8.RuneError && isUnsafe(r) }
