package redact

import (
	"bytes"
	"strings"
)

// secretText is a text to search for.
type secretText struct {
	bytes   string
	canWrap bool // line breaks may occur anywhere in the text
}

// textIndex finds texts by their first two bytes. Most pairs of bytes begin no text.
type textIndex struct {
	pairs     [1 << 10]uint64 // bitmap of the pairs that begin a text
	texts     map[uint16][]secretText
	first     [1 << 8]bool // bytes that begin a text
	maxLength int          // largest number of bytes that an occurrence takes
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
			x.maxLength = max(x.maxLength, 3*len(bytes)) // if every byte is on its own line
		}
	}
	return x
}

func bytePair(first, second byte) uint16 { return uint16(first)<<8 | uint16(second) }

// addText indexes a text by its first byte and the given second byte.
func (x *textIndex) addText(second byte, t secretText) {
	p := bytePair(t.bytes[0], second)
	x.texts[p] = append(x.texts[p], t)
	x.pairs[p>>6] |= 1 << (p & 63)
}

// candidateTexts returns the texts that may begin at data, which has at least two bytes.
func (x *textIndex) candidateTexts(data []byte) []secretText {
	p := bytePair(data[0], data[1])
	if x.pairs[p>>6]&(1<<(p&63)) == 0 {
		return nil
	}
	return x.texts[p]
}

// longestMatch returns the length of the longest text at the beginning of data; 0 if there is none.
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

// isPrefix reports whether data is an incomplete beginning of a text.
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

// matchAt returns how many bytes of data match the text, and whether the text is complete; -1 if
// data does not match.
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

// matchWrapped is like matchAt, for a text that may contain line breaks.
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

// lineEnd returns the length of the line break at the beginning of data; 0 if there is none.
func lineEnd(data []byte) int {
	switch {
	case bytes.HasPrefix(data, []byte("\r\n")):
		return 2
	case len(data) > 0 && data[0] == '\n', len(data) == 1 && data[0] == '\r': // a \n may follow
		return 1
	}
	return 0
}
