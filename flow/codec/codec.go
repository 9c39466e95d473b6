// Package codec writes values as bytes and reads them back; one description of a type serves both
// directions.
//
// Promises: equal values give equal bytes. Values of users are copied with their length in front,
// without a look inside; a large value that occurs again is written only once. Reading ends for any
// input, and its memory is bounded by the length of the input.
package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
)

// Codec writes or reads. Values that it reads share the input bytes.
type Codec struct {
	b          []byte // written so far, or not read yet
	reading    bool
	broken     string // why it stopped; "" = it has not
	exactLists bool   // lists are allocated in one piece

	sharing bool     // large values become pieces of their own
	pieces  [][]byte // pieces before b

	large  []json.RawMessage // values so far that are worth a search for duplicates
	places map[uint64]int    // indexes in large, by hash, of the first value with that hash
}

// minSharedBytes is the length from which a repeated value is written only once. The params of a
// task, for example, are also seen by its steps, and the jobs of a step have the same params.
const minSharedBytes = 128

// minPieceBytes is the length from which a sharing writer does not copy a value. Copying a shorter
// one costs less than the two pieces that it would create.
const minPieceBytes = 512

// Copied returns how many bytes a sharing writer copies of a value of this length.
func Copied(value int) int {
	if value >= minPieceBytes {
		return 0
	}
	return value
}

// The two possible faults of the input.
const (
	CutShort = "it ends too early, or a length in it is wrong"
	NoSuch   = "it names something that this release does not know"
)

// Write returns a Codec that appends to some bytes.
func Write(b []byte) *Codec { return &Codec{b: b} }

// WriteSharing returns a Codec that writes in pieces: large values are not copied, so they must not
// be changed from then on.
func WriteSharing(b []byte) *Codec { return &Codec{b: b, sharing: true} }

// Read returns a Codec that reads bytes of any origin.
func Read(b []byte) *Codec { return &Codec{b: b, reading: true} }

// ReadOwn returns a Codec that reads bytes which this program has written: it trusts the lengths of
// lists, and allocates each list in one piece.
func ReadOwn(b []byte) *Codec { return &Codec{b: b, reading: true, exactLists: true} }

// Reading reports whether the Codec reads.
func (c *Codec) Reading() bool { return c.reading }

// Bytes returns the bytes that were written, or that are not read yet.
func (c *Codec) Bytes() []byte { return c.b }

// Pieces returns the output of a sharing writer, to be concatenated.
func (c *Codec) Pieces() [][]byte { return append(c.pieces, c.b) }

// Broken returns the reason why the Codec stopped; "" if it has not.
func (c *Codec) Broken() string { return c.broken }

// Fail stops the Codec. The first reason counts.
func (c *Codec) Fail(why string) {
	if c.broken == "" {
		c.broken = why
	}
	c.b = nil
}

// Int64 codes an integer; small numbers take one byte.
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

// Int codes an integer like Int64.
func (c *Codec) Int(v *int) {
	n := int64(*v)
	c.Int64(&n)
	if c.reading { // other goroutines may be reading a value that is written
		*v = int(n)
	}
}

// Bool codes a boolean as a byte, 0 or 1.
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

// Byte codes a byte.
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

// codeLength codes the length of a list. Every element takes at least a byte, so a false length
// cannot allocate much memory.
func (c *Codec) codeLength(n int) int {
	c.Int(&n)
	if c.reading && (n < 0 || n > len(c.b)) {
		c.Fail(CutShort)
		return 0
	}
	return n
}

// Raw codes a value as its length and its bytes. A repeated large value is coded as minus the
// number of the first one, counted from 1.
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

// lengthOrNumber returns the length of a large value that is new, otherwise minus its number.
func (c *Codec) lengthOrNumber(v json.RawMessage) int {
	h := maphash.Bytes(hashSeed, v)
	i, seen := c.places[h]
	switch {
	case seen && bytes.Equal(c.large[i], v):
		return -(i + 1)
	case c.places == nil:
		c.places = map[uint64]int{}
	}
	if !seen { // of two values with the same hash, the second is written each time
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

// Bytes codes bytes. Nil and empty slices are the same.
func Bytes(c *Codec, v *[]byte) {
	n := c.codeLength(len(*v))
	switch {
	case !c.reading:
		c.b = append(c.b, *v...)
	case n > 0:
		*v, c.b = c.b[:n:n], c.b[n:]
	}
}

// Text codes a string; reading copies it.
func Text[T ~string](c *Codec, v *T) {
	n := c.codeLength(len(*v))
	if !c.reading {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = T(c.b[:n]), c.b[n:]
}

// List codes the length of a list and its elements.
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
	// otherwise the list grows as it is read, because an element in memory is larger than a byte of
	// input
	for range n {
		var none T
		*list = append(*list, none)
		if code(c, &(*list)[len(*list)-1]); c.broken != "" {
			return
		}
	}
}

// Pointer codes whether there is a value, and the value.
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

// Map codes the keys in order, so that equal maps give equal bytes.
func Map[T any](c *Codec, m *map[string]T, code func(*Codec, *T)) {
	n := c.codeLength(len(*m))
	if n == 0 {
		return // without an allocation for the keys
	}
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
