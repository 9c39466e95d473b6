package script

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"sync"
)

const readSize = 4 << 10

// buffer gathers what a script prints. Buffers are used again: most scripts print little.
type buffer struct {
	bytes.Buffer
	also io.Writer // gets all of it as it comes
	tail []byte    // the end of what did not fit
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func takeBuffer() *buffer { return buffers.Get().(*buffer) }

func giveBuffer(b *buffer) {
	if b.also, b.tail = nil, nil; b.Cap() > 64<<10 { // one script that printed much must not cost memory for ever
		return
	}
	b.Reset()
	buffers.Put(b)
}

// free is space behind the content, to be read into; grow makes n bytes of it content.
func (b *buffer) free(n int) []byte {
	b.Grow(n)
	space := b.AvailableBuffer()
	return space[:min(n, cap(space))]
}

func (b *buffer) grow(n int) {
	space := b.AvailableBuffer()
	b.Write(space[:n])
}

// last is the end of what was printed.
func (b *buffer) last() []byte {
	if len(b.tail) > 0 {
		return b.tail
	}
	return b.Bytes()
}

// ending keeps the end of what is printed.
type ending struct {
	also io.Writer // gets all of it as it comes
	b    []byte
}

const endingSize = 4 << 10

func (e *ending) Write(b []byte) (int, error) {
	e.b = append(e.b, b...)
	if over := len(e.b) - endingSize; over > 0 {
		e.b = append(e.b[:0], e.b[over:]...)
	}
	return e.also.Write(b)
}

// encode makes a result of what was printed: the JSON it is, if asked for, else a text.
func encode(printed []byte, asJSON bool) json.RawMessage {
	if asJSON {
		if doc := bytes.TrimSpace(printed); json.Valid(doc) {
			return bytes.Clone(doc)
		}
	}
	return quote(string(printed))
}

func quote(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always has an encoding
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// lastLine is the last line that says anything, cut to what an error text should hold.
func lastLine(printed []byte) string {
	const enough = 500
	printed = bytes.TrimSpace(printed)
	printed = printed[bytes.LastIndexByte(printed, '\n')+1:]
	if len(printed) > enough {
		printed = printed[:enough]
	}
	return strings.ToValidUTF8(string(printed), "")
}
