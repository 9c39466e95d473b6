package types

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Problem is a problem with its place: the keys that lead there. An element of a list is written as
// [2].
type Problem struct {
	Path    []string
	Msg     string
	Warning bool // the problem may be intended
}

// Where returns the place as a reference, such as $params.items[2].sku.
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

// isWord reports whether a key can be written without quotes. The length limit is not in the
// pattern: the regular expression would contain one copy of all letters per character, and its
// compilation took a third of the program's start time.
func isWord(key string) bool {
	return utf8.RuneCountInString(key) <= 256 && wordPattern.MatchString(key)
}

// Problems lists all known problems of a value.
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

// maxProblems is the maximum number of problems that are reported at once.
const maxProblems = 100

// childPath returns a path with one more key. It does not change path.
func childPath(path []string, key string) []string { return append(path[:len(path):len(path)], key) }

func indexText(i int) string { return fmt.Sprintf("[%d]", i) }

// shortenText shortens a text for a message.
func shortenText(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// valuePath is a path during a check: a key or a list index, and the parent path. The root path is
// nil.
type valuePath struct {
	parent *valuePath
	name   string
	index  int // -1 for a key
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
