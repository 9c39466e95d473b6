// Package printer writes JSON answers that have values of users in them.
//
// What it promises: a value of a user is copied to the reader of the answer as it is, neither looked at nor first put
// together with the rest; what it refers to (package internal/payload) stands in its place, of which no more than one is in memory. So an answer takes no memory beside that of the values it is made of, however large they are
// and however slowly it is read. Apart from blanks in such values it is what encoding/json writes without care for HTML.
package printer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/payload"
)

// ErrGone reports that the reader takes no more of the answer. The error around it holds the reason.
var ErrGone = errors.New("the reader of an answer is gone")

// JSON writes a value, and a text behind it. Any error but ErrGone is that of a value which has no JSON, or that of what a value of a user refers to.
func JSON(w io.Writer, v any, end string) error {
	p := newPrinter(reader{w}, payload.Of(w))
	p.value(reflect.ValueOf(v))
	p.text(end)
	return p.end()
}

// Check finds out whether what the values of users in an answer refer to is there. What is printed first can no longer become an error.
func Check(v any, values *payload.Store) error {
	if values == nil {
		return nil
	}
	p := newPrinter(io.Discard, values)
	p.checks = true
	p.value(reflect.ValueOf(v))
	return p.end()
}

// reader is whom an answer is for.
type reader struct{ io.Writer }

func (r reader) Write(b []byte) (int, error) {
	n, err := r.Writer.Write(b)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	return n, err
}

// printer writes values one after the other. After an error it writes nothing any more.
type printer struct {
	to   *bufio.Writer
	leaf *json.Encoder // writes what no values of users are in
	err  error

	values *payload.Store // what references stand for; nil = there are none
	checks bool           // it only looks whether that is there
}

const bufferSize = 16 << 10

// buffers are for printers: of a short answer one would cost more than all else.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferSize) }}

func newPrinter(w io.Writer, values *payload.Store) *printer {
	p := &printer{to: buffers.Get().(*bufio.Writer), values: values}
	p.to.Reset(w)
	p.leaf = json.NewEncoder(unbroken{p.to})
	p.leaf.SetEscapeHTML(false)
	return p
}

// unbroken leaves out the newline that an encoder ends with.
type unbroken struct{ to *bufio.Writer }

func (u unbroken) Write(b []byte) (int, error) {
	if _, err := u.to.Write(b[:len(b)-1]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// end is the last that is asked of a printer.
func (p *printer) end() error {
	if p.err == nil {
		p.err = p.to.Flush()
	}
	p.to.Reset(nil)
	buffers.Put(p.to)
	p.to = nil
	return p.err
}

func (p *printer) text(s string) {
	if p.err == nil {
		_, p.err = p.to.WriteString(s)
	}
}

func (p *printer) value(v reflect.Value) {
	switch {
	case p.err != nil:
	case !v.IsValid():
		p.text("null")
	case v.Type() == rawType:
		p.raw(v.Bytes())
	case v.Type() == textType:
		p.quoted(v.Interface().(Text))
	case !shapeOf(v.Type()).holds && p.checks:
	case !shapeOf(v.Type()).holds:
		p.err = p.leaf.Encode(v.Interface())
	default:
		p.inside(v)
	}
}

func (p *printer) raw(value []byte) {
	if len(value) == 0 {
		value = []byte("null")
	}
	switch {
	case p.checks:
		p.err = p.values.Reader(context.Background(), value).Check()
	case p.values != nil:
		p.err = p.values.Write(context.Background(), p.to, value)
	default:
		_, p.err = p.to.Write(value)
	}
}

func (p *printer) inside(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		p.object(v)
	case reflect.Map:
		p.entries(v)
	case reflect.Slice, reflect.Array:
		p.list(v)
	default: // a pointer or an interface
		p.value(v.Elem())
	}
}

func (p *printer) object(v reflect.Value) {
	p.text("{")
	between := ""
	for _, f := range shapeOf(v.Type()).fields {
		field := v.FieldByIndex(f.index)
		if f.omitted(field) {
			continue
		}
		p.text(between)
		p.text(f.name)
		switch {
		case f.plain:
			p.plain(field)
		case f.time:
			p.time(field.Interface().(wire.Time))
		default:
			p.value(field)
		}
		between = ","
	}
	p.text("}")
}

// plain writes a text or a whole number: most of an answer with many values are such fields, and most texts have nothing to escape.
func (p *printer) plain(v reflect.Value) {
	switch {
	case p.err != nil || p.checks:
	case v.CanInt():
		_, p.err = p.to.Write(strconv.AppendInt(p.to.AvailableBuffer(), v.Int(), 10))
	case asItIs(v.String()):
		p.text(`"`)
		p.text(v.String())
		p.text(`"`)
	default:
		p.err = p.leaf.Encode(v.Interface())
	}
}

func (p *printer) time(t wire.Time) {
	if p.err != nil || p.checks {
		return
	}
	b, _ := t.AppendText(append(p.to.AvailableBuffer(), '"'))
	_, p.err = p.to.Write(append(b, '"'))
}

// asItIs says whether a text stands between quotes as it is.
func asItIs(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// entries writes a map, sorted by its keys.
func (p *printer) entries(v reflect.Value) {
	if v.IsNil() {
		p.text("null")
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	p.text("{")
	for i, key := range keys {
		if i > 0 {
			p.text(",")
		}
		p.value(key)
		p.text(":")
		p.value(v.MapIndex(key))
	}
	p.text("}")
}

func (p *printer) list(v reflect.Value) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		p.text("null")
		return
	}
	p.text("[")
	for i := range v.Len() {
		if i > 0 {
			p.text(",")
		}
		p.value(v.Index(i))
	}
	p.text("]")
}

func (p *printer) quoted(t Text) {
	p.text(`"`)
	if p.err != nil {
		return
	}
	inner := newPrinter(quoter{p.to}, p.values)
	inner.checks = p.checks
	inner.value(reflect.ValueOf(t.Of))
	p.err = inner.end()
	p.text(`"`)
}
