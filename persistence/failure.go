package persistence

import (
	"strings"
	"unicode/utf8"
)

// FailureChars is the number of characters of an error that Failure uses.
const FailureChars = 200

// Failure returns the beginning of a task's error with each number replaced by #, so that similar
// failures group together: "pay2: card # refused". The text before the first colon is kept, because
// it names a node.
func Failure(err string) string {
	if cut := prefixBytes(err, FailureChars); cut < len(err) {
		err = err[:cut]
	}
	node := max(strings.Index(err, ": "), 0)
	short := append(make([]byte, 0, len(err)), err[:node]...)
	number := false
	for _, c := range []byte(err[node:]) {
		switch digit := c >= '0' && c <= '9'; {
		case !digit:
			short, number = append(short, c), false
		case !number:
			short, number = append(short, '#'), true
		}
	}
	return string(short)
}

// prefixBytes returns the length in bytes of the first chars characters of text.
func prefixBytes(text string, chars int) (bytes int) {
	for ; chars > 0 && bytes < len(text); chars-- {
		_, size := utf8.DecodeRuneInString(text[bytes:])
		bytes += size
	}
	return bytes
}
