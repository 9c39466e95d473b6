package script

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

const readSize = 4 << 10

// buffer gathers what scripts print. Buffers are used again: most scripts print little.
type buffer struct{ bytes.Buffer }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func takeBuffer() *buffer { return buffers.Get().(*buffer) }

func giveBuffer(b *buffer) {
	if b.Cap() > 64<<10 { // one script that printed much must not cost memory for ever
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
