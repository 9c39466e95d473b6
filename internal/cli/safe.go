package cli

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

// What others wrote, definitions and servers above all, must do nothing to a terminal but be read
// on it: no escape sequence, no text that runs backwards, no line that looks like one of ours. So
// everything for people goes through a display, which lets lines and tabs through, and what belongs
// on one line through clean before that.

// isUnsafe are characters that control a terminal or how the text around them is shown.
func isUnsafe(r rune) bool {
	switch {
	case unicode.IsControl(r), r == utf8.RuneError:
		return true
	case r == 0x061C, r == 0x200E, r == 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // direction
		return true
	case r == 0x2028, r == 0x2029, r == 0xFEFF, r >= 0xFFF9 && r <= 0xFFFB, r >= 0xE0000 && r <= 0xE007F: // lines, notes, tags
		return true
	}
	return false
}

// replaceUnsafe stands in for an unsafe character.
func replaceUnsafe(r rune) rune {
	switch {
	case unicode.IsControl(r):
		return ' '
	case isUnsafe(r):
		return utf8.RuneError
	}
	return r
}

// sanitizeText makes one line of what others wrote, that can do nothing to a terminal.
func sanitizeText(s string) string { return strings.Map(replaceUnsafe, s) }

// outputWriter is where texts for people are written. Of a terminal it knows how wide it is, and
// whether it may be in color.
type outputWriter struct {
	io.Writer
	width int // 0 = it has no end
	color bool
}

// newDisplay looks at what w is.
func newDisplay(w io.Writer) outputWriter {
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

// colors of the words that tell how something is.
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

// colorState gives a word that tells how something is its color, also with a remark behind it. The
// text is clean.
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

// escapeUnsafe writes what JSON holds in its texts so that it means the same and is safe to look
// at.
func escapeUnsafe(doc []byte) []byte {
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

// unsafeInJSON: between its texts it has lines and tabs, and within them nothing below a space.
func unsafeInJSON(r rune) bool { return r >= ' ' && r != utf8.RuneError && isUnsafe(r) }
