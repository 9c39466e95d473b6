package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
)

// codec writes or reads a message, so that one description of a type serves both ways. Values of users are copied
// with their length in front of them: nobody looks inside. What it reads shares the bytes it reads from.
type codec struct {
	b       []byte // written so far, or yet to be read
	reading bool
	broken  string // why it cannot go on; "" = it can

	large  []json.RawMessage // values so far that are worth to be looked for again
	places map[uint64][]int  // in large, by hash
}

// largeValue is how long a value is that is written once, however often it is in a message: the jobs of a step have
// the same params.
const largeValue = 128

// The two things that may be wrong with bytes.
const (
	cutShort = "it ends too early, or a length in it is wrong"
	noSuch   = "it names something that this release does not know"
)

func (c *codec) fail(why string) {
	if c.broken == "" {
		c.broken = why
	}
	c.b = nil
}

func (c *codec) int64(v *int64) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, *v)
		return
	}
	n, size := binary.Varint(c.b)
	if size <= 0 {
		c.fail(cutShort)
		return
	}
	*v, c.b = n, c.b[size:]
}

func (c *codec) int(v *int) {
	n := int64(*v)
	c.int64(&n)
	if c.reading { // others may be looking at what is written
		*v = int(n)
	}
}

func (c *codec) bool(v *bool) {
	n := byte(0)
	if *v {
		n = 1
	}
	c.byte(&n)
	if n > 1 {
		c.fail(noSuch)
	}
	if c.reading {
		*v = n == 1
	}
}

func (c *codec) byte(v *byte) {
	switch {
	case !c.reading:
		c.b = append(c.b, *v)
	case len(c.b) == 0:
		c.fail(cutShort)
	default:
		*v, c.b = c.b[0], c.b[1:]
	}
}

// count is the length of a list. Every element takes at least a byte, so a false one cannot ask for much memory.
func (c *codec) count(n int) int {
	c.int(&n)
	if c.reading && (n < 0 || n > len(c.b)) {
		c.fail(cutShort)
		return 0
	}
	return n
}

// bytes are copied; none and no bytes are the same.
func (c *codec) bytes(v *[]byte) {
	n := c.count(len(*v))
	switch {
	case !c.reading:
		c.b = append(c.b, *v...)
	case n > 0:
		*v, c.b = c.b[:n:n], c.b[n:]
	}
}

// raw is a value behind its length, or minus the number of an equal one before it, counted from 1.
func (c *codec) raw(v *json.RawMessage) {
	if c.reading {
		c.readRaw(v)
		return
	}
	n := len(*v)
	if n >= largeValue {
		n = c.place(*v)
	}
	c.int(&n)
	if n > 0 {
		c.b = append(c.b, *v...)
	}
}

// place is the length of a large value that is new, else minus its number.
func (c *codec) place(v json.RawMessage) int {
	h := maphash.Bytes(hashSeed, v)
	for _, i := range c.places[h] {
		if bytes.Equal(c.large[i], v) {
			return -(i + 1)
		}
	}
	if c.places == nil {
		c.places = map[uint64][]int{}
	}
	c.places[h] = append(c.places[h], len(c.large))
	c.large = append(c.large, v)
	return len(v)
}

var hashSeed = maphash.MakeSeed()

func (c *codec) readRaw(v *json.RawMessage) {
	var n int
	c.int(&n)
	switch {
	case n > len(c.b) || n < -len(c.large):
		c.fail(cutShort)
	case n > 0:
		*v, c.b = json.RawMessage(c.b[:n:n]), c.b[n:]
		if n >= largeValue {
			c.large = append(c.large, *v)
		}
	case n < 0:
		*v = c.large[-n-1]
	}
}

func (c *codec) text(v *string) {
	n := c.count(len(*v))
	if !c.reading {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = string(c.b[:n]), c.b[n:]
}

func codeList[T any](c *codec, list *[]T, code func(*codec, *T)) {
	n := c.count(len(*list))
	if !c.reading {
		for i := range *list {
			code(c, &(*list)[i])
		}
		return
	}
	for range n { // grown as it is read: an element in memory is larger than a byte of the message
		var v T
		if code(c, &v); c.broken != "" {
			return
		}
		*list = append(*list, v)
	}
}

func codePointer[T any](c *codec, p **T, code func(*codec, *T)) {
	there := *p != nil
	c.bool(&there)
	if !there {
		return
	}
	if c.reading {
		*p = new(T)
	}
	code(c, *p)
}

// texts writes the keys in their order, so that equal messages are equal bytes.
func (c *codec) texts(m *map[string]string) {
	n := c.count(len(*m))
	if !c.reading {
		for _, key := range slices.Sorted(maps.Keys(*m)) {
			value := (*m)[key]
			c.text(&key)
			c.text(&value)
		}
		return
	}
	for range n {
		var key, value string
		c.text(&key)
		if c.text(&value); c.broken != "" {
			return
		}
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)[key] = value
	}
}
