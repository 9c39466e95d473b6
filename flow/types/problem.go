package types

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Problem is something wrong, and where: the keys that lead there, elements of lists as [2].
type Problem struct {
	Path    []string
	Msg     string
	Warning bool // it may be meant so
}

// Where is the place as a reference, such as $params.items[2].sku.
func (p Problem) Where() string {
	var b strings.Builder
	b.WriteString("$params")
	for _, key := range p.Path {
		switch {
		case element.MatchString(key):
			b.WriteString(key)
		case isWord(key):
			b.WriteString("." + key)
		default:
			fmt.Fprintf(&b, "[%s]", expr.Quote(shorten(key)))
		}
	}
	return b.String()
}

func (p Problem) String() string { return p.Where() + ": " + p.Msg }

var (
	word    = regexp.MustCompile(`^[\p{L}\p{N}_-]+$`)
	element = regexp.MustCompile(`^\[[0-9]+\]$`)
)

// isWord says whether a key can be told as it is. The bound is not in the expression: that would be compiled to as many copies of all letters there are,
// which took a third of the time in which the program begins.
func isWord(key string) bool { return utf8.RuneCountInString(key) <= 256 && word.MatchString(key) }

// Problems are all that is known to be wrong with a value.
type Problems []Problem

func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i, problem := range p {
		texts[i] = problem.String()
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return fmt.Sprintf("%d inputs do not fit: %s", len(texts), strings.Join(texts, "; "))
}

// maxProblems is how many are told at once.
const maxProblems = 100

// below is a path one key longer. The path itself is not changed by that.
func below(path []string, key string) []string { return append(path[:len(path):len(path)], key) }

func index(i int) string { return fmt.Sprintf("[%d]", i) }

// shorten cuts what no reader could take in.
func shorten(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// trail is a path while it is followed: a key, or without one an element of a list, and what is above it. The root is nil.
type trail struct {
	up    *trail
	name  string
	index int // -1 = it is a key
	depth int
}

func (t *trail) key(name string) *trail { return &trail{t, name, -1, t.length() + 1} }

func (t *trail) element(i int) *trail { return &trail{t, "", i, t.length() + 1} }

func (t *trail) length() int {
	if t == nil {
		return 0
	}
	return t.depth
}

func (t *trail) path() []string {
	path := make([]string, t.length())
	for ; t != nil; t = t.up {
		path[t.depth-1] = t.name
		if t.index >= 0 {
			path[t.depth-1] = index(t.index)
		}
	}
	return path
}
