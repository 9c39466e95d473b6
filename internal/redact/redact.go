// Package redact hides what must not be seen, the values of secrets, in what programs say.
//
// Promises: a value of at least Least bytes does not get through, as it is or as JSON, URLs and
// base64 write it, at whatever place of what they write and however that is cut into pieces; nor
// does a line of it, or a text inside of it if it is JSON, of at least Part bytes. Whatever is no
// part of one gets through unchanged and in order. A Writer holds back no more than a value takes,
// and nothing when it is closed.
package redact

import (
	"bytes"
	"cmp"
	"io"
	"slices"
)

const (
	// Mask stands where a value was.
	Mask = "***"
	// Least is how long a value has to be to be looked for. A shorter one is found in too much that
	// it has nothing to do with.
	Least = 4
	// Part is how long a part of a value, or what it becomes when it is written otherwise, has to
	// be.
	Part = 8
)

// Redactor hides some values. A nil one hides nothing.
type Redactor struct{ index textIndex }

// New makes one, nil when there is nothing to be looked for.
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

// Text is a text without the values.
func (r *Redactor) Text(s string) string {
	if r == nil || s == "" {
		return s
	}
	return string(r.Bytes([]byte(s)))
}

// Bytes are bytes without the values.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil || len(r.findSpans(b)) == 0 {
		return b
	}
	var out bytes.Buffer
	w := r.Writer(&out)
	_, _ = w.Write(b) // memory takes everything
	_ = w.Close()
	return out.Bytes()
}

// Writer is where to write what is to be written elsewhere without the values. It is to be closed.
func (r *Redactor) Writer(to io.Writer) *Writer { return &Writer{r: r, to: to} }

// Writer writes what it gets without the values.
type Writer struct {
	r           *Redactor
	to          io.Writer
	held        []byte // what a value may begin with
	maskedAhead int    // how much of that belongs to a value for which the mask was written
}

// Write takes all of p. An error is that of whom it is written to.
func (w *Writer) Write(p []byte) (int, error) {
	if w.r == nil {
		return w.to.Write(p)
	}
	data := append(w.held, p...)
	return len(p), w.writeUpTo(data, w.r.holdBackFrom(data))
}

// Close writes what was held back.
func (w *Writer) Close() error { return w.writeUpTo(w.held, len(w.held)) }

// writeUpTo writes data up to an end, and holds back the rest.
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

// maskUpTo is data up to an end without the values, and how much behind the end belongs to the last
// of them.
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

// foundSpan is where a value was found.
type foundSpan struct{ from, to int }

// findSpans are all of them, in order; what overlaps is one.
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

// holdBackFrom is from where on data may be the beginning of a value.
func (r *Redactor) holdBackFrom(data []byte) int {
	for at := max(len(data)-r.index.maxLength, 0); at < len(data); at++ {
		if r.index.isPrefix(data[at:]) {
			return at
		}
	}
	return len(data)
}
