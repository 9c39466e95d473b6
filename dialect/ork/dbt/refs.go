package dbt

import (
	"strings"
	"unicode/utf8"
)

// modelRef is a reference to a node that dbt builds.
type modelRef struct {
	project, name string // project is "" if the reference names none
	line, column  int
}

// refFault is a fault at a place of a text.
type refFault struct {
	line, column int
	msg          string
}

// scanResult holds the parts that were found in a text.
type scanResult struct {
	refs      []modelRef
	snapshots []string // names of snapshots that the text defines
	faults    []refFault
}

// finder scans SQL text with Jinja templates. Only the templates matter. As in dbt, a template
// inside an SQL comment, such as `-- depends_on: {{ ref('x') }}`, is a reference. A template inside
// a Jinja comment or string is not a reference.
type finder struct {
	scanResult
	text string
	at   int

	counted, line, column int // position up to which lines were counted
}

func findRefs(text string) scanResult {
	f := &finder{text: text, line: 1, column: 1}
	for f.at < len(text) {
		open := strings.IndexByte(text[f.at:], '{')
		if open < 0 {
			break
		}
		f.at += open
		switch rest := text[f.at:]; {
		case strings.HasPrefix(rest, "{#"):
			f.skipBlock("{#", "#}")
		case strings.HasPrefix(rest, "{{"):
			f.readTemplate("{{", "}}")
		case strings.HasPrefix(rest, "{%"):
			f.readStatement()
		default:
			f.at++
		}
	}
	return f.scanResult
}

// skipBlock moves past a block without meaning.
func (f *finder) skipBlock(begin, end string) {
	length := strings.Index(f.text[f.at+len(begin):], end)
	if length < 0 {
		f.addFault(f.at, "a "+begin+" without its "+end)
		f.at = len(f.text)
		return
	}
	f.at += len(begin) + length + len(end)
}

// readStatement reads a statement: it collects the name of a snapshot, and skips raw blocks.
func (f *finder) readStatement() {
	begin := f.at
	words := f.readTemplate("{%", "%}")
	switch {
	case len(words) > 1 && words[0] == "snapshot":
		f.snapshots = append(f.snapshots, words[1])
	case len(words) > 0 && words[0] == "raw":
		f.skipRaw(begin)
	}
}

// skipRaw moves past the end of a raw block.
func (f *finder) skipRaw(begin int) {
	for {
		open := strings.Index(f.text[f.at:], "{%")
		if open < 0 {
			f.addFault(begin, "a {% raw %} without its {% endraw %}")
			f.at = len(f.text)
			return
		}
		f.at += open + len("{%")
		if strings.HasPrefix(strings.TrimLeft(f.text[f.at:], "-+ \t\r\n"), "endraw") {
			return
		}
	}
}

// readTemplate reads a template to its end. It returns the words outside strings that are not parts
// of other words.
func (f *finder) readTemplate(begin, end string) (words []string) {
	start, depth := f.at, 0
	for f.at += len(begin); f.at < len(f.text); {
		switch c := f.text[f.at]; {
		case depth == 0 && strings.HasPrefix(f.text[f.at:], end):
			f.at += len(end)
			return words
		case c == '\'' || c == '"':
			if _, closed := f.readQuoted(); !closed {
				f.addFault(start, "a text in this template without its end")
				f.at = len(f.text)
				return words
			}
		case strings.IndexByte("([{", c) >= 0:
			depth++
			f.at++
		case strings.IndexByte(")]}", c) >= 0:
			depth = max(depth-1, 0)
			f.at++
		case isWord(c):
			words = append(words, f.readWord())
		default:
			f.at++
		}
	}
	f.addFault(start, "a "+begin+" without its "+end)
	return words
}

// readWord reads a word, and the arguments if it is a call of ref.
func (f *finder) readWord() string {
	begin := f.at
	for f.at < len(f.text) && isWord(f.text[f.at]) {
		f.at++
	}
	word := f.text[begin:f.at]
	if word == "ref" && !f.isPart(begin) && strings.HasPrefix(f.remainingText(), "(") {
		f.readRefCall(begin)
	}
	return word
}

// isPart reports whether a word is an attribute of something other than dbt's builtins.
func (f *finder) isPart(begin int) bool {
	before, dot := strings.CutSuffix(strings.TrimRight(f.text[:begin], " \t\r\n"), ".")
	return dot && !strings.HasSuffix(strings.TrimRight(before, " \t\r\n"), "builtins")
}

// readRefCall reads ref('x') or ref('project', 'x').
func (f *finder) readRefCall(begin int) {
	said := modelRef{}
	said.line, said.column = f.lineColumn(begin)
	f.acceptToken("(")
	name, isText := f.readArgument()
	if isText && f.acceptToken(",") {
		said.project = name
		name, isText = f.readArgument()
	}
	if said.name = name; !isText || !f.acceptToken(")") {
		f.addFault(begin, "only dbt knows what this refers to: write ref('model') or "+
			"ref('project', 'model'), or have dbt parse write "+Manifest)
		return
	}
	f.refs = append(f.refs, said)
}

func (f *finder) readArgument() (text string, isText bool) {
	if rest := f.remainingText(); !strings.HasPrefix(rest, "'") && !strings.HasPrefix(rest, `"`) {
		return "", false
	}
	return f.readQuoted()
}

// remainingText skips white space and returns the text after it.
func (f *finder) remainingText() string {
	rest := strings.TrimLeft(f.text[f.at:], " \t\r\n")
	f.at = len(f.text) - len(rest)
	return rest
}

// acceptToken moves past a token if it comes next.
func (f *finder) acceptToken(what string) bool {
	if !strings.HasPrefix(f.remainingText(), what) {
		return false
	}
	f.at += len(what)
	return true
}

// readQuoted reads a string. The next character must be its opening quote.
func (f *finder) readQuoted() (text string, closed bool) {
	var b strings.Builder
	quote := f.text[f.at]
	for f.at++; f.at < len(f.text); f.at++ {
		switch c := f.text[f.at]; {
		case c == quote:
			f.at++
			return b.String(), true
		case c == '\\' && f.at+1 < len(f.text):
			f.at++
			b.WriteByte(f.text[f.at])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func (f *finder) addFault(at int, msg string) {
	line, column := f.lineColumn(at)
	f.faults = append(f.faults, refFault{line, column, msg})
}

// lineColumn returns the line and column of a byte, from 1. It continues from the previous call, so
// many calls together need a single pass over the text.
func (f *finder) lineColumn(at int) (line, column int) {
	if at < f.counted {
		f.counted, f.line, f.column = 0, 1, 1
	}
	for _, r := range f.text[f.counted:at] {
		if f.column++; r == '\n' {
			f.line, f.column = f.line+1, 1
		}
	}
	f.counted = at
	return f.line, f.column
}
