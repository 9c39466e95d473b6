package printer

import (
	"bytes"
	"fmt"
	"io"
)

// Text is a value that is printed as a JSON text which contains the value's JSON.
type Text struct{ Of any }

// MarshalJSON returns the complete text, for encoders other than this package.
func (t Text) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	p := newPrinter(&b, nil)
	p.writeQuoted(t)
	err := p.flushAll()
	return b.Bytes(), err
}

// quoteWriter writes the escaped content of a quoted text.
type quoteWriter struct{ to io.Writer }

func (q quoteWriter) Write(b []byte) (int, error) {
	done := 0
	for i, c := range b {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		if _, err := q.to.Write(b[done:i]); err != nil {
			return done, err
		}
		if err := q.writeEscaped(c); err != nil {
			return i, err
		}
		done = i + 1
	}
	n, err := q.to.Write(b[done:])
	return done + n, err
}

func (q quoteWriter) writeEscaped(c byte) error {
	escaped := "\\" + string(rune(c))
	if c < ' ' {
		escaped = fmt.Sprintf("\\u%04x", c)
	}
	_, err := io.WriteString(q.to, escaped)
	return err
}
