package expr

import "bytes"

// cursor iterates over the members of one array or object. It never recurses, and it reads each
// byte once.
type cursor struct {
	data  []byte
	pos   int
	close byte
	begun bool
	// ended reports that the closing bracket was reached, and that only white space follows.
	ended bool

	key   []byte // key as written, with its quotes; only for objects
	value []byte
}

// newCursor returns a cursor before the first member of v, if v begins with the given bracket.
func newCursor(v []byte, open byte) (cursor, bool) {
	c := cursor{data: v, close: open + 2} // in ASCII ']' is '[' + 2 and '}' is '{' + 2
	c.skipSpace()
	if c.currentByte() != open {
		return cursor{}, false
	}
	c.pos++
	return c, true
}

// nextMember moves to the next member and returns false if there is none. In this case ended
// reports whether the whole value was read.
func (c *cursor) nextMember() bool {
	c.skipSpace()
	if c.currentByte() == c.close {
		c.pos++
		c.skipSpace()
		c.ended = c.pos == len(c.data)
		return false
	}
	if c.begun {
		if c.currentByte() != ',' {
			return false
		}
		c.pos++
		c.skipSpace()
	}
	c.begun = true
	if c.close == '}' && !c.readKey() {
		return false
	}
	start := c.pos
	if !c.skipValue() {
		return false
	}
	c.value = c.data[start:c.pos:c.pos]
	return true
}

// readKey reads a key and the colon that follows.
func (c *cursor) readKey() bool {
	start := c.pos
	if c.currentByte() != '"' || !c.skipString() {
		return false
	}
	c.key = c.data[start:c.pos:c.pos]
	c.skipSpace()
	if c.currentByte() != ':' {
		return false
	}
	c.pos++
	c.skipSpace()
	return true
}

// currentByte returns the byte at the cursor, or 0 after the end. Valid JSON has no byte 0 outside
// of strings.
func (c *cursor) currentByte() byte {
	if c.pos < len(c.data) {
		return c.data[c.pos]
	}
	return 0
}

func (c *cursor) skipSpace() {
	for c.pos < len(c.data) && isSpace(c.data[c.pos]) {
		c.pos++
	}
}

// skipValue moves past one value. It returns false if the value does not end.
func (c *cursor) skipValue() bool {
	switch c.currentByte() {
	case '"':
		return c.skipString()
	case '{', '[':
		return c.skipNested()
	}
	start := c.pos
	for c.pos < len(c.data) && !isDelimiter(c.data[c.pos]) {
		c.pos++
	}
	return c.pos > start
}

// skipString moves past the string at the cursor.
func (c *cursor) skipString() bool {
	end := stringEnd(c.data, c.pos)
	if end < 0 {
		return false
	}
	c.pos = end
	return true
}

// stringEnd returns the position after the string that begins at start, or -1 if the string does
// not end. A quote ends the string unless an odd number of backslashes precedes it.
func stringEnd(data []byte, start int) int {
	first := start + 1
	for i := first; i < len(data); i++ {
		// Most strings end within a few bytes; a search is faster only for long ones.
		if i-first >= 16 {
			n := bytes.IndexByte(data[i:], '"')
			if n < 0 {
				return -1
			}
			i += n
		}
		if data[i] != '"' {
			continue
		}
		escape := i
		for escape > first && data[escape-1] == '\\' {
			escape--
		}
		if (i-escape)%2 == 0 {
			return i + 1
		}
	}
	return -1
}

// skipNested moves past the array or object at the cursor. In valid JSON brackets always match, so
// they are only counted.
func (c *cursor) skipNested() bool {
	data, depth := c.data, 0
	for i := c.pos; i < len(data); i++ {
		switch data[i] {
		case '"':
			end := stringEnd(data, i)
			if end < 0 {
				return false
			}
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				c.pos = i + 1
				return true
			}
		}
	}
	return false
}

func isSpace(b byte) bool {
	return b == ' ' || b == '\n' || b == '\t' || b == '\r'
}

func isDelimiter(b byte) bool {
	switch b {
	case ',', ':', '"', '[', ']', '{', '}':
		return true
	}
	return isSpace(b)
}

// trimSpace removes the white space around v.
func trimSpace(v []byte) []byte {
	for len(v) > 0 && isSpace(v[0]) {
		v = v[1:]
	}
	for len(v) > 0 && isSpace(v[len(v)-1]) {
		v = v[:len(v)-1]
	}
	return v
}

// End returns the position after the JSON value that begins at start, or -1 if the value does not
// end. It reads each byte once, and only checks brackets and quotes.
func End(data []byte, start int) int {
	c := cursor{data: data, pos: start}
	if !c.skipValue() {
		return -1
	}
	return c.pos
}
