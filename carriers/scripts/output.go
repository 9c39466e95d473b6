package scripts

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"sync"
)

const readSize = 4 << 10

// outputBuffer collects the output of a script. Buffers are reused, because most scripts print
// little.
type outputBuffer struct {
	bytes.Buffer
	copyTo io.Writer // receives all output at once
	tail   []byte    // end of the output that did not fit
}

var buffers = sync.Pool{New: func() any { return new(outputBuffer) }}

func takeBuffer() *outputBuffer { return buffers.Get().(*outputBuffer) }

func giveBuffer(b *outputBuffer) {
	// a single large output must not keep its memory forever
	if b.copyTo, b.tail = nil, nil; b.Cap() > 64<<10 {
		return
	}
	b.Reset()
	buffers.Put(b)
}

// freeSpace returns space after the content to read into. extendBy then adds n bytes of that space
// to the content.
func (b *outputBuffer) freeSpace(n int) []byte {
	b.Grow(n)
	space := b.AvailableBuffer()
	return space[:min(n, cap(space))]
}

func (b *outputBuffer) extendBy(n int) {
	space := b.AvailableBuffer()
	b.Write(space[:n])
}

// lastOutput returns the end of the output.
func (b *outputBuffer) lastOutput() []byte {
	if len(b.tail) > 0 {
		return b.tail
	}
	return b.Bytes()
}

// outputTail keeps the end of an output.
type outputTail struct {
	copyTo io.Writer // receives all output at once
	kept   []byte
}

const endingSize = 4 << 10

func (e *outputTail) Write(b []byte) (int, error) {
	e.kept = append(e.kept, b...)
	if over := len(e.kept) - endingSize; over > 0 {
		e.kept = append(e.kept[:0], e.kept[over:]...)
	}
	return e.copyTo.Write(b)
}

// encodeOutput converts an output to a result: as JSON if requested and valid, else as text.
func encodeOutput(printed []byte, asJSON bool) json.RawMessage {
	if asJSON {
		if doc := bytes.TrimSpace(printed); json.Valid(doc) {
			return bytes.Clone(doc)
		}
	}
	return quoteJSON(string(printed))
}

func quoteJSON(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// lastLine returns the last non-empty line, shortened for an error text.
func lastLine(printed []byte) string {
	const enough = 500
	printed = bytes.TrimSpace(printed)
	printed = printed[bytes.LastIndexByte(printed, '\n')+1:]
	if len(printed) > enough {
		printed = printed[:enough]
	}
	return strings.ToValidUTF8(string(printed), "")
}
