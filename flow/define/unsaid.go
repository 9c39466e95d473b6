package define

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Unsaid is what a definition of graph mode means where it says nothing itself: the zero value for most, and
// something else for those whose clients expect that. It is written into what is published, so that a version says
// what it means, whoever published it.
type Unsaid struct {
	OnError   string // "" = fail
	OnMissing string // "" = fail
}

// PocketFlow is for flows of the clients of its routes: a failed step takes the edge that it takes after a success, and comparisons
// take what is missing for null.
var PocketFlow = Unsaid{OnError: OnErrorFollow, OnMissing: OnMissingCoerce}

// said is a field, and what it is when nobody says it.
type said struct {
	name string
	word *string // of the definition
	mean string
}

func (u Unsaid) fields(d *Definition) []said {
	return []said{{"on_error", &d.OnError, cmp.Or(u.OnError, OnErrorFail)}, {"on_missing", &d.OnMissing, cmp.Or(u.OnMissing, OnMissingFail)}}
}

// Write has a definition say what it leaves out, and its text in JSON as well: in front, and everything else stays byte for
// byte.
func (u Unsaid) Write(d *Definition, text []byte) []byte {
	var front []byte
	for _, f := range u.fields(d) {
		if *f.word != "" {
			continue
		}
		*f.word = f.mean
		if whole, there := withWord(text, f.name, f.mean); there {
			text = whole
			continue
		}
		front = f.append(front)
	}
	at := bytes.IndexByte(text, '{') + 1
	if len(front) == 0 || at == 0 {
		return text
	}
	return slices.Concat(text[:at], front, []byte{' '}, text[at:])
}

// Cut takes what Write has put into a text out of it.
func (u Unsaid) Cut(text []byte) []byte {
	at := bytes.IndexByte(text, '{') + 1
	rest, cut := text[at:], false
	for _, f := range u.fields(&Definition{}) {
		var there bool
		rest, there = bytes.CutPrefix(rest, f.append(nil))
		cut = cut || there
	}
	if rest, ended := bytes.CutPrefix(rest, []byte{' '}); cut && ended {
		return slices.Concat(text[:at], rest)
	}
	return text
}

func (f said) append(b []byte) []byte {
	b = append(expr.AppendQuote(b, f.name), ':')
	return append(expr.AppendQuote(b, f.mean), ',')
}

// withWord puts a word in the place of a null, or of a text that says nothing. There is false if an object in JSON does not
// have the field.
func withWord(text []byte, name, word string) (whole []byte, there bool) {
	root, ok := readJSON(plain(text), &Reporter{}).(*jsonValue)
	if !ok || root.kind() != expr.KindObject {
		return text, true
	}
	m := memberOf(root.members(), name)
	if m == nil {
		return text, false
	}
	v := m.value.(*jsonValue)
	return slices.Concat(root.in.text[:v.start], expr.AppendQuote(nil, word), root.in.text[v.end:]), true
}
