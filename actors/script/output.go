package script

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"sync"
)

const readSize = 4 << 10

// outputBuffer gathers what a script prints. Buffers are used again: most scripts print little.
type outputBuffer struct {
	bytes.Buffer
	copyTo io.Writer // gets all of it as it comes
	tail   []byte    // the end of what did not fit
}

var buffers = sync.Pool{New: func() any { return new(outputBuffer) }}

func takeBuffer() *outputBuffer { return buffers.Get().(*outputBuffer) }

func giveBuffer(b *outputBuffer) {
	if b.copyTo, b.tail = nil, nil; b.Cap() > 64<<10 { // one script that printed much must not cost memory for ever
		return
	}
	b.Reset()
	buffers.Put(b)
}

// freeSpace is space behind the content, to be read into; grow makes n bytes of it content.
func (b *outputBuffer) freeSpace(n int) []byte {
	b.Grow(n)
	space := b.AvailableBuffer()
	return space[:min(n, cap(space))]
}

func (b *outputBuffer) extendBy(n int) {
	space := b.AvailableBuffer()
	b.Write(space[:n])
}

// lastOutput is the end of what was printed.
func (b *outputBuffer) lastOutput() []byte {
	if len(b.tail) > 0 {
		return b.tail
	}
	return b.Bytes()
}

// outputTail keeps the end of what is printed.
type outputTail struct {
	copyTo io.Writer // gets all of it as it comes
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

// encodeOutput makes a result of what was printed: the JSON it is, if asked for, else a text.
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
