// Package printer writes JSON answers that contain values of users.
//
// It copies a value of a user unchanged, without parsing it or holding it together with other
// values. It replaces a reference in a value (package internal/payload) by the referenced content,
// with one content in memory at a time. So an answer needs little memory, regardless of its values
// and the speed of the client. Apart from white space in values, the output equals that of
// encoding/json without HTML escaping.
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

// ErrGone reports that the client no longer reads the answer. It is wrapped in an error with the
// reason.
var ErrGone = errors.New("the reader of an answer is gone")

// JSON writes v as JSON, followed by the text end. An error other than ErrGone means that v has no
// JSON, or that a reference in a value could not be read.
func JSON(w io.Writer, v any, end string) error {
	p := newPrinter(clientWriter{w}, payload.Of(w))
	p.writeValue(reflect.ValueOf(v))
	p.writeText(end)
	return p.flushAll()
}

// Check returns an error if a reference in an answer's values cannot be read. It is called first,
// because an answer that has begun cannot become an error.
func Check(v any, values *payload.Store) error {
	if values == nil {
		return nil
	}
	p := newPrinter(io.Discard, values)
	p.checkOnly = true
	p.writeValue(reflect.ValueOf(v))
	return p.flushAll()
}

// clientWriter marks write errors as ErrGone.
type clientWriter struct{ io.Writer }

func (r clientWriter) Write(b []byte) (int, error) {
	n, err := r.Writer.Write(b)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	return n, err
}

// printer writes values one after another. After an error it writes nothing.
type printer struct {
	to   *bufio.Writer
	leaf *json.Encoder // encoder for values without values of users
	err  error

	values    *payload.Store // resolves references; nil if all values are in the store
	checkOnly bool           // only check that references can be read
}

const bufferSize = 16 << 10

// buffers holds buffers for printers. For a short answer, the allocation of a buffer would be the
// largest cost.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferSize) }}

func newPrinter(w io.Writer, values *payload.Store) *printer {
	p := &printer{to: buffers.Get().(*bufio.Writer), values: values}
	p.to.Reset(w)
	p.leaf = json.NewEncoder(newlineTrimmer{p.to})
	p.leaf.SetEscapeHTML(false)
	return p
}

// newlineTrimmer removes the newline at the end of an encoder's output.
type newlineTrimmer struct{ to *bufio.Writer }

func (u newlineTrimmer) Write(b []byte) (int, error) {
	if _, err := u.to.Write(b[:len(b)-1]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// flushAll writes the buffered output and ends the use of a printer.
func (p *printer) flushAll() error {
	if p.err == nil {
		p.err = p.to.Flush()
	}
	p.to.Reset(nil)
	buffers.Put(p.to)
	p.to = nil
	return p.err
}

func (p *printer) writeText(s string) {
	if p.err == nil {
		_, p.err = p.to.WriteString(s)
	}
}

func (p *printer) writeValue(v reflect.Value) {
	switch {
	case p.err != nil:
	case !v.IsValid():
		p.writeText("null")
	case v.Type() == rawType:
		p.writeRaw(v.Bytes())
	case v.Type() == textType:
		p.writeQuoted(v.Interface().(Text))
	case !shapeOf(v.Type()).holdsValues && p.checkOnly:
	case !shapeOf(v.Type()).holdsValues:
		p.err = p.leaf.Encode(v.Interface())
	default:
		p.writeInner(v)
	}
}

func (p *printer) writeRaw(value []byte) {
	if len(value) == 0 {
		value = []byte("null")
	}
	switch {
	case p.checkOnly:
		p.err = p.values.Reader(context.Background(), value).Check()
	case p.values != nil:
		p.err = p.values.Write(context.Background(), p.to, value)
	default:
		_, p.err = p.to.Write(value)
	}
}

func (p *printer) writeInner(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		p.writeObject(v)
	case reflect.Map:
		p.writeMap(v)
	case reflect.Slice, reflect.Array:
		p.writeList(v)
	default: // a pointer or an interface
		p.writeValue(v.Elem())
	}
}

func (p *printer) writeObject(v reflect.Value) {
	p.writeText("{")
	between := ""
	for _, f := range shapeOf(v.Type()).fields {
		field := v.FieldByIndex(f.index)
		if f.isOmitted(field) {
			continue
		}
		p.writeText(between)
		p.writeText(f.name)
		switch {
		case f.plain:
			p.writePlain(field)
		case f.time:
			p.writeTime(field.Interface().(wire.Time))
		default:
			p.writeValue(field)
		}
		between = ","
	}
	p.writeText("}")
}

// writePlain writes a text or a whole number directly. Most fields are of these types, and most
// texts need no escaping.
func (p *printer) writePlain(v reflect.Value) {
	switch {
	case p.err != nil || p.checkOnly:
	case v.CanInt():
		_, p.err = p.to.Write(strconv.AppendInt(p.to.AvailableBuffer(), v.Int(), 10))
	case asItIs(v.String()):
		p.writeText(`"`)
		p.writeText(v.String())
		p.writeText(`"`)
	default:
		p.err = p.leaf.Encode(v.Interface())
	}
}

func (p *printer) writeTime(t wire.Time) {
	if p.err != nil || p.checkOnly {
		return
	}
	b, _ := t.AppendText(append(p.to.AvailableBuffer(), '"'))
	_, p.err = p.to.Write(append(b, '"'))
}

// asItIs reports whether a text needs no JSON escaping.
func asItIs(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// writeMap writes a map, sorted by its keys.
func (p *printer) writeMap(v reflect.Value) {
	if v.IsNil() {
		p.writeText("null")
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	p.writeText("{")
	for i, key := range keys {
		if i > 0 {
			p.writeText(",")
		}
		p.writeValue(key)
		p.writeText(":")
		p.writeValue(v.MapIndex(key))
	}
	p.writeText("}")
}

func (p *printer) writeList(v reflect.Value) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		p.writeText("null")
		return
	}
	p.writeText("[")
	for i := range v.Len() {
		if i > 0 {
			p.writeText(",")
		}
		p.writeValue(v.Index(i))
	}
	p.writeText("]")
}

func (p *printer) writeQuoted(t Text) {
	p.writeText(`"`)
	if p.err != nil {
		return
	}
	inner := newPrinter(quoteWriter{p.to}, p.values)
	inner.checkOnly = p.checkOnly
	inner.writeValue(reflect.ValueOf(t.Of))
	p.err = inner.flushAll()
	p.writeText(`"`)
}
