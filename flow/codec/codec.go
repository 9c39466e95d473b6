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

// Codec encodes or decodes values. Decoded values share memory with the input.
type Codec struct {
	b          []byte // bytes written so far, or not read yet
	reading    bool
	broken     string // reason why the codec stopped; "" if it has not
	exactLists bool   // allocate lists in one piece

	sharing bool     // store large values as separate pieces
	pieces  [][]byte // pieces that precede b

	large  []json.RawMessage // large values so far, in which duplicates are searched
	places map[uint64]int    // indexes in large, by hash, of the first value with that hash
}

// minSharedBytes is the length from which a repeated value is written only once. For example, the
// params of a task are often also the params of its steps and jobs.
const minSharedBytes = 128

// minPieceBytes is the length from which a sharing writer does not copy a value. For a shorter
// value, a copy costs less than the two pieces that it would create.
const minPieceBytes = 512

// Copied returns how many bytes a sharing writer copies for a value of this length.
func Copied(value int) int {
	if value >= minPieceBytes {
		return 0
	}
	return value
}

// Possible faults of the input, as reasons for Fail.
const (
	CutShort = "it ends too early, or a length in it is wrong"
	NoSuch   = "it names something that this release does not know"
)

// Write returns a Codec that appends to b.
func Write(b []byte) *Codec { return &Codec{b: b} }

// WriteSharing returns a Codec that writes in pieces. Large values are not copied, so the caller
// must not change them afterwards.
func WriteSharing(b []byte) *Codec { return &Codec{b: b, sharing: true} }

// Read returns a Codec that decodes bytes of any origin.
func Read(b []byte) *Codec { return &Codec{b: b, reading: true} }

// ReadOwn returns a Codec that decodes bytes which this program has written. It trusts the lengths
// of lists, and allocates each list in one piece.
func ReadOwn(b []byte) *Codec { return &Codec{b: b, reading: true, exactLists: true} }

// Reading reports whether the Codec decodes.
func (c *Codec) Reading() bool { return c.reading }

// Bytes returns the bytes that were written or, for a reader, are not read yet.
func (c *Codec) Bytes() []byte { return c.b }

// Pieces returns the output of a sharing writer. The concatenation of the pieces is the encoded
// text.
func (c *Codec) Pieces() [][]byte { return append(c.pieces, c.b) }

// Broken returns the reason why the Codec stopped, or "" if it has not stopped.
func (c *Codec) Broken() string { return c.broken }

// Fail stops the Codec. Only the reason of the first call is stored.
func (c *Codec) Fail(why string) {
	if c.broken == "" {
		c.broken = why
	}
	c.b = nil
}

// Int64 encodes or decodes an integer. Small numbers take one byte.
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

// Int encodes or decodes an integer like Int64.
func (c *Codec) Int(v *int) {
	n := int64(*v)
	c.Int64(&n)
	if c.reading { // a written value may have concurrent readers
		*v = int(n)
	}
}

// Bool encodes or decodes a boolean as one byte, 0 or 1.
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

// Byte encodes or decodes a byte.
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

// codeLength encodes or decodes the length of a list. Every element takes at least one byte, so a
// wrong length cannot allocate much memory.
func (c *Codec) codeLength(n int) int {
	c.Int(&n)
	if c.reading && (n < 0 || n > len(c.b)) {
		c.Fail(CutShort)
		return 0
	}
	return n
}

// Raw encodes or decodes a value as its length and its bytes. A repeated large value is encoded as
// minus its number: the first large value has number 1.
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

// lengthOrNumber returns the length of a large value that is new, and minus its number for a
// repeated value.
func (c *Codec) lengthOrNumber(v json.RawMessage) int {
	h := maphash.Bytes(hashSeed, v)
	i, seen := c.places[h]
	switch {
	case seen && bytes.Equal(c.large[i], v):
		return -(i + 1)
	case c.places == nil:
		c.places = map[uint64]int{}
	}
	if !seen { // a second value with the same hash is written each time
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

// Bytes encodes or decodes bytes. A nil slice is the same as an empty one.
func Bytes(c *Codec, v *[]byte) {
	n := c.codeLength(len(*v))
	switch {
	case !c.reading:
		c.b = append(c.b, *v...)
	case n > 0:
		*v, c.b = c.b[:n:n], c.b[n:]
	}
}

// Text encodes or decodes a string. Decoding copies the string.
func Text[T ~string](c *Codec, v *T) {
	n := c.codeLength(len(*v))
	if !c.reading {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = T(c.b[:n]), c.b[n:]
}

// List encodes or decodes the length of a list and its elements.
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

// Pointer encodes or decodes whether p points to a value, and the value.
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

// Map encodes or decodes a map. The keys are sorted, so that equal maps give equal bytes.
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
