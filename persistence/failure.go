package persistence

import (
	"strings"
	"unicode/utf8"
)

// FailureChars is how many characters of an error Failure looks at.
const FailureChars = 200

// Failure is the beginning of a task's error with # in place of each number, so that what fails in
// the same way is told alike: "pay2: card # refused". What is before the first colon names a node,
// and stays as it is.
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

// prefixBytes is how many bytes the first characters of a text have.
func prefixBytes(text string, chars int) (bytes int) {
	for ; chars > 0 && bytes < len(text); chars-- {
		_, size := utf8.DecodeRuneInString(text[bytes:])
		bytes += size
	}
	return bytes
}
