package redact

import (
	"bytes"
	"strings"
)

// text is what is looked for.
type text struct {
	bytes string
	wraps bool // a new line may begin anywhere in it
}

// index finds texts by their first two bytes, of which most pairs begin none.
type index struct {
	pairs [1 << 10]uint64 // a bit for each pair that begins one
	texts map[uint16][]text
	first [1 << 8]bool // bytes that begin one
	reach int          // how much of what it is written in a text takes at most
}

func newIndex(f forms) index {
	x := index{texts: map[uint16][]text{}}
	for bytes, wraps := range f {
		t := text{bytes, wraps}
		x.first[bytes[0]] = true
		x.add(bytes[1], t)
		x.reach = max(x.reach, len(bytes))
		if wraps {
			x.add('\r', t)
			x.add('\n', t)
			x.reach = max(x.reach, 3*len(bytes)) // if each byte has a line of its own
		}
	}
	return x
}

func pair(first, second byte) uint16 { return uint16(first)<<8 | uint16(second) }

// add has a text be found by its first byte and a second one.
func (x *index) add(second byte, t text) {
	p := pair(t.bytes[0], second)
	x.texts[p] = append(x.texts[p], t)
	x.pairs[p>>6] |= 1 << (p & 63)
}

// starting are the texts that data of at least two bytes may begin with.
func (x *index) starting(data []byte) []text {
	p := pair(data[0], data[1])
	if x.pairs[p>>6]&(1<<(p&63)) == 0 {
		return nil
	}
	return x.texts[p]
}

// longest is how many bytes the longest text takes that data begins with; 0 = it begins with none.
func (x *index) longest(data []byte) (n int) {
	if len(data) < 2 {
		return 0
	}
	for _, t := range x.starting(data) {
		if took, whole := t.at(data); whole {
			n = max(n, took)
		}
	}
	return n
}

// begins says that data is the beginning of a text, and less than all of it.
func (x *index) begins(data []byte) bool {
	if len(data) < 2 {
		return x.first[data[0]]
	}
	for _, t := range x.starting(data) {
		if took, whole := t.at(data); !whole && took == len(data) {
			return true
		}
	}
	return false
}

// at is how many bytes of data the text takes, or as much of it as there is; -1 = data begins otherwise.
func (t *text) at(data []byte) (took int, whole bool) {
	switch {
	case t.wraps:
		return t.wrapped(data)
	case len(data) >= len(t.bytes) && string(data[:len(t.bytes)]) == t.bytes:
		return len(t.bytes), true
	case len(data) < len(t.bytes) && strings.HasPrefix(t.bytes, string(data)):
		return len(data), false
	}
	return -1, false
}

// wrapped is the same for a text within which lines may begin.
func (t *text) wrapped(data []byte) (took int, whole bool) {
	for i := range len(t.bytes) {
		if i > 0 {
			took += lineEnd(data[took:])
		}
		if took == len(data) {
			return took, false
		}
		if data[took] != t.bytes[i] {
			return -1, false
		}
		took++
	}
	return took, true
}

// lineEnd is how many bytes the end of a line has that data begins with.
func lineEnd(data []byte) int {
	switch {
	case bytes.HasPrefix(data, []byte("\r\n")):
		return 2
	case len(data) > 0 && data[0] == '\n', len(data) == 1 && data[0] == '\r': // which may go on
		return 1
	}
	return 0
}
