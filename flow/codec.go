package flow

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
)

// codec writes or reads the parts of a snapshot, so that one description of a type serves both ways. Values
// are copied with their length in front of them: nobody looks inside. What it reads shares the bytes it
// reads from.
type codec struct {
	b       []byte // written so far, or yet to be read
	reading bool
	broken  bool

	large  []json.RawMessage // values so far that are worth to be looked for again
	places map[uint64]int    // in large, by hash, of the first with it
}

// largeValue is how long a value is that is written once, however often it stands in a state: what a task
// was started with is also what its steps see.
const largeValue = 128

func (c *codec) fail() {
	c.broken, c.b = true, nil
}

func (c *codec) int64(v *int64) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, *v)
		return
	}
	n, size := binary.Varint(c.b)
	if size <= 0 {
		c.fail()
		return
	}
	*v, c.b = n, c.b[size:]
}

func (c *codec) int(v *int) {
	n := int64(*v)
	c.int64(&n)
	if c.reading { // who writes a state down is one of many who may be looking at it
		*v = int(n)
	}
}

func (c *codec) bool(v *bool) {
	var b byte
	if *v {
		b = 1
	}
	c.byte(&b)
	if c.reading {
		*v = b != 0
	}
}

func (c *codec) byte(v *byte) {
	if !c.reading {
		c.b = append(c.b, *v)
		return
	}
	if len(c.b) == 0 {
		c.fail()
		return
	}
	*v, c.b = c.b[0], c.b[1:]
}

// count is the length of a list. Every element takes at least a byte, so a false one cannot ask for much memory.
func (c *codec) count(n int) int {
	c.int(&n)
	if c.reading && (n < 0 || n > len(c.b)) {
		c.fail()
		return 0
	}
	return n
}

// raw is a value behind its length, or minus the number of an equal one before it, counted from 1.
func (c *codec) raw(v *json.RawMessage) {
	if c.reading {
		c.readRaw(v)
		return
	}
	n := len(*v)
	if n >= largeValue {
		n = c.known(*v)
	}
	c.int(&n)
	if n > 0 {
		c.b = append(c.b, *v...)
	}
}

// known is the length of a large value that is new, else minus its number.
func (c *codec) known(v json.RawMessage) int {
	h := maphash.Bytes(hashSeed, v)
	i, seen := c.places[h]
	switch {
	case seen && bytes.Equal(c.large[i], v):
		return -(i + 1)
	case c.places == nil:
		c.places = map[uint64]int{}
	}
	if !seen {
		c.places[h] = len(c.large)
	}
	c.large = append(c.large, v)
	return len(v)
}

var hashSeed = maphash.MakeSeed()

func (c *codec) readRaw(v *json.RawMessage) {
	var n int
	c.int(&n)
	switch {
	case n > len(c.b) || n < -len(c.large):
		c.fail()
	case n > 0:
		*v, c.b = json.RawMessage(c.b[:n:n]), c.b[n:]
		if n >= largeValue {
			c.large = append(c.large, *v)
		}
	case n < 0:
		*v = c.large[-n-1]
	}
}

func codeText[T ~string](c *codec, v *T) {
	n := c.count(len(*v))
	if !c.reading {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = T(c.b[:n]), c.b[n:]
}

func codeList[T any](c *codec, list *[]T, code func(*codec, *T)) {
	n := c.count(len(*list))
	if c.reading && n > 0 {
		*list = make([]T, n)
	}
	for i := range *list {
		code(c, &(*list)[i])
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

// codeMap writes the keys in their order, so that equal states give equal bytes.
func codeMap[T any](c *codec, m *map[string]T, code func(*codec, *T)) {
	n := c.count(len(*m))
	if !c.reading {
		for _, key := range slices.Sorted(maps.Keys(*m)) {
			codeText(c, &key)
			value := (*m)[key]
			code(c, &value)
		}
		return
	}
	if n > 0 {
		*m = make(map[string]T, n)
	}
	for range n {
		var key string
		var value T
		codeText(c, &key)
		code(c, &value)
		if !c.broken {
			(*m)[key] = value
		}
	}
}
