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
		case elementPattern.MatchString(key):
			b.WriteString(key)
		case isWord(key):
			b.WriteString("." + key)
		default:
			fmt.Fprintf(&b, "[%s]", expr.Quote(shortenText(key)))
		}
	}
	return b.String()
}

func (p Problem) String() string { return p.Where() + ": " + p.Msg }

var (
	wordPattern    = regexp.MustCompile(`^[\p{L}\p{N}_-]+$`)
	elementPattern = regexp.MustCompile(`^\[[0-9]+\]$`)
)

// isWord reports whether a key can be told as it is. The bound is not in the expression: that would
// be compiled to as many copies of all letters there are, which took a third of the time in which
// the program begins.
func isWord(key string) bool {
	return utf8.RuneCountInString(key) <= 256 && wordPattern.MatchString(key)
}

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

// childPath is a path one key longer. The path itself is not changed by that.
func childPath(path []string, key string) []string { return append(path[:len(path):len(path)], key) }

func indexText(i int) string { return fmt.Sprintf("[%d]", i) }

// shortenText cuts what no reader could take in.
func shortenText(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// valuePath is a path while it is followed: a key, or without one an element of a list, and what is
// above it. The root is nil.
type valuePath struct {
	parent *valuePath
	name   string
	index  int // -1 = it is a key
	depth  int
}

func (t *valuePath) childKey(name string) *valuePath {
	return &valuePath{t, name, -1, t.pathLength() + 1}
}

func (t *valuePath) childIndex(i int) *valuePath { return &valuePath{t, "", i, t.pathLength() + 1} }

func (t *valuePath) pathLength() int {
	if t == nil {
		return 0
	}
	return t.depth
}

func (t *valuePath) pathKeys() []string {
	path := make([]string, t.pathLength())
	for ; t != nil; t = t.parent {
		path[t.depth-1] = t.name
		if t.index >= 0 {
			path[t.depth-1] = indexText(t.index)
		}
	}
	return path
}
