package redact

import (
	"bytes"
	"strings"
)

// secretText is what is looked for.
type secretText struct {
	bytes   string
	canWrap bool // a new line may begin anywhere in it
}

// textIndex finds texts by their first two bytes, of which most pairs begin none.
type textIndex struct {
	pairs     [1 << 10]uint64 // a bit for each pair that begins one
	texts     map[uint16][]secretText
	first     [1 << 8]bool // bytes that begin one
	maxLength int          // how much of what it is written in a text takes at most
}

func newIndex(f secretForms) textIndex {
	x := textIndex{texts: map[uint16][]secretText{}}
	for bytes, wraps := range f {
		t := secretText{bytes, wraps}
		x.first[bytes[0]] = true
		x.addText(bytes[1], t)
		x.maxLength = max(x.maxLength, len(bytes))
		if wraps {
			x.addText('\r', t)
			x.addText('\n', t)
			x.maxLength = max(x.maxLength, 3*len(bytes)) // if each byte has a line of its own
		}
	}
	return x
}

func bytePair(first, second byte) uint16 { return uint16(first)<<8 | uint16(second) }

// addText has a text be found by its first byte and a second one.
func (x *textIndex) addText(second byte, t secretText) {
	p := bytePair(t.bytes[0], second)
	x.texts[p] = append(x.texts[p], t)
	x.pairs[p>>6] |= 1 << (p & 63)
}

// candidateTexts are the texts that data of at least two bytes may begin with.
func (x *textIndex) candidateTexts(data []byte) []secretText {
	p := bytePair(data[0], data[1])
	if x.pairs[p>>6]&(1<<(p&63)) == 0 {
		return nil
	}
	return x.texts[p]
}

// longestMatch is how many bytes the longest text takes that data begins with; 0 = it begins with
// none.
func (x *textIndex) longestMatch(data []byte) (n int) {
	if len(data) < 2 {
		return 0
	}
	for _, t := range x.candidateTexts(data) {
		if took, whole := t.matchAt(data); whole {
			n = max(n, took)
		}
	}
	return n
}

// isPrefix says that data is the beginning of a text, and less than all of it.
func (x *textIndex) isPrefix(data []byte) bool {
	if len(data) < 2 {
		return x.first[data[0]]
	}
	for _, t := range x.candidateTexts(data) {
		if took, whole := t.matchAt(data); !whole && took == len(data) {
			return true
		}
	}
	return false
}

// matchAt is how many bytes of data the text takes, or as much of it as there is; -1 = data begins
// otherwise.
func (t *secretText) matchAt(data []byte) (took int, whole bool) {
	switch {
	case t.canWrap:
		return t.matchWrapped(data)
	case len(data) >= len(t.bytes) && string(data[:len(t.bytes)]) == t.bytes:
		return len(t.bytes), true
	case len(data) < len(t.bytes) && strings.HasPrefix(t.bytes, string(data)):
		return len(data), false
	}
	return -1, false
}

// matchWrapped is the same for a text within which lines may begin.
func (t *secretText) matchWrapped(data []byte) (took int, whole bool) {
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
