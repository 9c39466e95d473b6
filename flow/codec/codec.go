// Package codec writes values as bytes and reads them back, by one description of a type that
// serves both ways.
//
// Promises: equal values give equal bytes; values of users are copied with their length in front of
// them, because nobody looks inside, and a large one that comes again is written once; whatever the
// bytes are, reading them ends, and what it makes is bounded by how many there are.
package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
)

// Codec writes or reads. What it has read shares the bytes that it read from.
type Codec struct {
	b          []byte // written so far, or yet to be read
	reading    bool
	broken     string // why it cannot go on; "" = it can
	exactLists bool   // lists are made in one piece

	sharing bool     // large values are pieces of their own
	pieces  [][]byte // before b

	large  []json.RawMessage // values so far that are worth to be looked for again
	places map[uint64]int    // in large, by hash, of the first with it
}

// minSharedBytes is how long a value is that is written once, however often it is there: what a
// task was started with is also what its steps see, and the jobs of a step have the same params.
const minSharedBytes = 128

// minPieceBytes is how long a value is that a writer which shares does not copy: a shorter one
// costs less than the two pieces that it would make.
const minPieceBytes = 512

// Copied is how many bytes a writer that shares copies of values of so many bytes.
func Copied(value int) int {
	if value >= minPieceBytes {
		return 0
	}
	return value
}

// The two things that may be wrong with bytes.
const (
	CutShort = "it ends too early, or a length in it is wrong"
	NoSuch   = "it names something that this release does not know"
)

// Write begins to write behind some bytes.
func Write(b []byte) *Codec { return &Codec{b: b} }

// WriteSharing begins to write in pieces: large values stay where they are, and are not to be
// changed from then on.
func WriteSharing(b []byte) *Codec { return &Codec{b: b, sharing: true} }

// Read begins to read what anybody may have written.
func Read(b []byte) *Codec { return &Codec{b: b, reading: true} }

// ReadOwn begins to read what this program has written: a list is made in one piece, because its
// length is true.
func ReadOwn(b []byte) *Codec { return &Codec{b: b, reading: true, exactLists: true} }

// Reading reports whether it reads.
func (c *Codec) Reading() bool { return c.reading }

// Bytes are what it has written, or has yet to read.
func (c *Codec) Bytes() []byte { return c.b }

// Pieces are what a writer that shares has written: one behind the other.
func (c *Codec) Pieces() [][]byte { return append(c.pieces, c.b) }

// Broken says why it cannot go on; "" = it can.
func (c *Codec) Broken() string { return c.broken }

// Fail stops it. The first reason counts.
func (c *Codec) Fail(why string) {
	if c.broken == "" {
		c.broken = why
	}
	c.b = nil
}

// Int64 takes one byte for small numbers.
func (c *Codec) Int64(v *int64) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, *v)
		return
	}
	n, size := binary.Varint(c.b)
	if size <= 0 {
		c.Fail(CutShort)
		return
	}
	*v, c.b = n, c.b[size:]
}

// Int is an Int64.
func (c *Codec) Int(v *int) {
	n := int64(*v)
	c.Int64(&n)
	if c.reading { // others may be looking at what is written
		*v = int(n)
	}
}

// Bool is a byte, 0 or 1.
func (c *Codec) Bool(v *bool) {
	var b byte
	if *v {
		b = 1
	}
	if c.Byte(&b); b > 1 {
		c.Fail(NoSuch)
	}
	if c.reading {
		*v = b == 1
	}
}

// Byte is itself.
func (c *Codec) Byte(v *byte) {
	switch {
	case !c.reading:
		c.b = append(c.b, *v)
	case len(c.b) == 0:
		c.Fail(CutShort)
	default:
		*v, c.b = c.b[0], c.b[1:]
	}
}

// codeLength is the length of a list. Every element takes at least a byte, so a false one cannot
// ask for much memory.
func (c *Codec) codeLength(n int) int {
	c.Int(&n)
	if c.reading && (n < 0 || n > len(c.b)) {
		c.Fail(CutShort)
		return 0
	}
	return n
}

// Raw is a value behind its length, or minus the number of an equal one before it, counted from 1.
func (c *Codec) Raw(v *json.RawMessage) {
	if c.reading {
		c.readRaw(v)
		return
	}
	n := len(*v)
	if n >= minSharedBytes {
		n = c.lengthOrNumber(*v)
	}
	c.Int(&n)
	switch {
	case n <= 0:
	case c.sharing && n >= minPieceBytes:
		c.pieces = append(c.pieces, c.b, *v)
		c.b = c.b[len(c.b):]
	default:
		c.b = append(c.b, *v...)
	}
}

// lengthOrNumber is the length of a large value that is new, else minus its number.
func (c *Codec) lengthOrNumber(v json.RawMessage) int {
	h := maphash.Bytes(hashSeed, v)
	i, seen := c.places[h]
	switch {
	case seen && bytes.Equal(c.large[i], v):
		return -(i + 1)
	case c.places == nil:
		c.places = map[uint64]int{}
	}
	if !seen { // of two values with the same hash the second one is written each time
		c.places[h] = len(c.large)
	}
	c.large = append(c.large, v)
	return len(v)
}

var hashSeed = maphash.MakeSeed()

func (c *Codec) readRaw(v *json.RawMessage) {
	var n int
	c.Int(&n)
	switch {
	case n > len(c.b) || n < -len(c.large):
		c.Fail(CutShort)
	case n > 0:
		*v, c.b = json.RawMessage(c.b[:n:n]), c.b[n:]
		if n >= minSharedBytes {
			c.large = append(c.large, *v)
		}
	case n < 0:
		*v = c.large[-n-1]
	}
}

// Bytes are copied; none and no bytes are the same.
func Bytes(c *Codec, v *[]byte) {
	n := c.codeLength(len(*v))
	switch {
	case !c.reading:
		c.b = append(c.b, *v...)
	case n > 0:
		*v, c.b = c.b[:n:n], c.b[n:]
	}
}

// Text is copied.
func Text[T ~string](c *Codec, v *T) {
	n := c.codeLength(len(*v))
	if !c.reading {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = T(c.b[:n]), c.b[n:]
}

// List is how many there are, and each of them.
func List[T any](c *Codec, list *[]T, code func(*Codec, *T)) {
	n := c.codeLength(len(*list))
	if !c.reading {
		for i := range *list {
			code(c, &(*list)[i])
		}
		return
	}
	if c.exactLists && n > 0 {
		*list = make([]T, 0, n)
	}
	for range n { // else grown as it is read: an element in memory is larger than a byte of a message
		var none T
		*list = append(*list, none)
		if code(c, &(*list)[len(*list)-1]); c.broken != "" {
			return
		}
	}
}

// Pointer is whether there is something, and what.
func Pointer[T any](c *Codec, p **T, code func(*Codec, *T)) {
	there := *p != nil
	c.Bool(&there)
	if !there {
		return
	}
	if c.reading {
		*p = new(T)
	}
	code(c, *p)
}

// Map writes the keys in their order, so that equal maps give equal bytes.
func Map[T any](c *Codec, m *map[string]T, code func(*Codec, *T)) {
	n := c.codeLength(len(*m))
	if !c.reading {
		for _, key := range slices.Sorted(maps.Keys(*m)) {
			value := (*m)[key]
			Text(c, &key)
			code(c, &value)
		}
		return
	}
	if c.exactLists && n > 0 {
		*m = make(map[string]T, n)
	}
	for range n {
		var key string
		var value T
		Text(c, &key)
		if code(c, &value); c.broken != "" {
			return
		}
		if *m == nil {
			*m = map[string]T{}
		}
		(*m)[key] = value
	}
}
