// Package redact hides the values of secrets in the output of programs.
//
// Promises:
//   - A value of at least Least bytes does not get through, whether plain or as written by JSON,
//     URLs and base64. Its position in the encoded text, and the division into writes, make no
//     difference.
//   - A line of a value, or a string inside a JSON value, does not get through if it has at least
//     Part bytes.
//   - All other bytes get through unchanged and in order.
//   - A Writer holds back no more bytes than a value takes, and none after Close.
package redact

import (
	"bytes"
	"cmp"
	"io"
	"slices"
)

const (
	// Mask replaces a value.
	Mask = "***"
	// Least is the smallest length of a value to search for. Shorter values would match too much
	// unrelated text.
	Least = 4
	// Part is the smallest length of a part of a value, or of its encoded form.
	Part = 8
)

// Redactor hides a set of values. A nil Redactor hides nothing.
type Redactor struct{ index textIndex }

// New returns a Redactor, or nil if there is nothing to search for.
func New(values ...string) *Redactor {
	f := secretForms{}
	for _, value := range values {
		f.addValue(value)
	}
	if len(f) == 0 {
		return nil
	}
	return &Redactor{newIndex(f)}
}

// Text returns s with the values masked.
func (r *Redactor) Text(s string) string {
	if r == nil || s == "" {
		return s
	}
	return string(r.Bytes([]byte(s)))
}

// Bytes returns b with the values masked.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil || len(r.findSpans(b)) == 0 {
		return b
	}
	var out bytes.Buffer
	w := r.Writer(&out)
	_, _ = w.Write(b) // a bytes.Buffer returns no errors
	_ = w.Close()
	return out.Bytes()
}

// Writer returns a Writer that masks the values and writes to w. The caller has to close it.
func (r *Redactor) Writer(to io.Writer) *Writer { return &Writer{r: r, to: to} }

// Writer writes its input with the values masked.
type Writer struct {
	r           *Redactor
	to          io.Writer
	held        []byte // possible beginning of a value
	maskedAhead int    // number of bytes of held that belong to an already masked value
}

// Write accepts the whole of p. The error is an error of the underlying writer.
func (w *Writer) Write(p []byte) (int, error) {
	if w.r == nil {
		return w.to.Write(p)
	}
	data := append(w.held, p...)
	return len(p), w.writeUpTo(data, w.r.holdBackFrom(data))
}

// Close writes the bytes that were held back.
func (w *Writer) Close() error { return w.writeUpTo(w.held, len(w.held)) }

// writeUpTo writes data up to end and holds back the rest.
func (w *Writer) writeUpTo(data []byte, end int) error {
	if len(data) == 0 {
		return nil
	}
	out, hidden := w.maskUpTo(data, end)
	var err error
	if len(out) > 0 {
		_, err = w.to.Write(out)
	}
	w.held, w.maskedAhead = append(w.held[:0], data[end:]...), hidden
	return err
}

// maskUpTo returns data up to end with the values masked, and how many bytes after end belong to
// the last value.
func (w *Writer) maskUpTo(data []byte, end int) (out []byte, hidden int) {
	spans := w.r.findSpans(data)
	if w.maskedAhead > 0 {
		spans = mergeSpans(append(spans, foundSpan{0, w.maskedAhead}))
	}
	if len(spans) == 0 {
		return data[:end], 0
	}
	from := 0
	for _, s := range spans {
		goesOn := s.from == 0 && w.maskedAhead > 0
		if s.from >= end && !goesOn {
			break
		}
		if out = append(out, data[from:s.from]...); !goesOn {
			out = append(out, Mask...)
		}
		from, hidden = min(s.to, end), max(s.to-end, 0)
	}
	return append(out, data[from:end]...), hidden
}

// foundSpan is the position of a found value.
type foundSpan struct{ from, to int }

// findSpans returns all found values in order, with overlapping ones merged.
func (r *Redactor) findSpans(data []byte) (all []foundSpan) {
	if r == nil {
		return nil
	}
	for at := range data {
		if n := r.index.longestMatch(data[at:]); n > 0 {
			all = append(all, foundSpan{at, at + n})
		}
	}
	return mergeSpans(all)
}

func mergeSpans(all []foundSpan) []foundSpan {
	slices.SortFunc(all, func(a, b foundSpan) int { return cmp.Compare(a.from, b.from) })
	kept := all[:0]
	for _, s := range all {
		if n := len(kept); n > 0 && s.from < kept[n-1].to {
			kept[n-1].to = max(kept[n-1].to, s.to)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// holdBackFrom returns the offset from which data may be the beginning of a value.
func (r *Redactor) holdBackFrom(data []byte) int {
	for at := max(len(data)-r.index.maxLength, 0); at < len(data); at++ {
		if r.index.isPrefix(data[at:]) {
			return at
		}
	}
	return len(data)
}
