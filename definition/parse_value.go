package definition

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// textValue is a part of a JSON or YAML text.
type textValue interface {
	kind() expr.Kind
	rawJSON() json.RawMessage // the value as JSON
	members() []objectMember  // of an object, in the written order
	elements() []textValue    // of an array
	position() textPosition
	characterAt(offset int) textPosition // position of a character of a text, from 0
}

// objectMember is a member of an object.
type objectMember struct {
	key   string
	at    textPosition // position of the key
	value textValue
}

// textPosition is a position in a text: a line and column from 1, or an offset whose line is not
// computed yet. The zero position is unknown.
type textPosition struct {
	line, column int

	text   *jsonText
	offset int
}

// lineColumn returns the line and column of the position.
func (p textPosition) lineColumn() (line, column int) {
	if p.text != nil {
		return p.text.lineColumn(p.offset)
	}
	return p.line, p.column
}

// Place is a place in a definition, given by its path. The root is nil.
type Place struct {
	parent    *Place
	name      string // key of an object, or index of an array element in brackets
	depth     int
	character int // character of the text at the path, from 1; 0 for the whole value
}

func (p *Place) childPlace(name string) *Place {
	if p == nil {
		return &Place{name: name, depth: 1}
	}
	return &Place{parent: p, name: name, depth: p.depth + 1}
}

// Character returns the place of a character, from 0, in the text at this place, such as an
// expression.
func (p *Place) Character(n int) *Place {
	at := *p
	at.character = n + 1
	return &at
}

// At returns the place of a key of the definition itself.
func At(key string) *Place { return (*Place)(nil).Key(key) }

// Key returns the place of a key below this one.
func (p *Place) Key(k string) *Place { return p.childPlace(k) }

// Index returns the place of an element below this one, counted from 0.
func (p *Place) Index(i int) *Place { return p.childPlace("[" + strconv.Itoa(i) + "]") }

// Inside returns the place at the end of a path such as and[1].eq.
func (p *Place) Inside(path string) *Place {
	for name := range strings.SplitSeq(path, ".") {
		key, rest, _ := strings.Cut(name, "[")
		if key != "" {
			p = p.Key(key)
		}
		for rest != "" {
			name, rest, _ = strings.Cut(rest, "[")
			p = p.childPlace("[" + name)
		}
	}
	return p
}

func (p *Place) String() string {
	var b strings.Builder
	for i, name := range p.pathNames() {
		if i > 0 && !strings.HasPrefix(name, "[") {
			b.WriteByte('.')
		}
		b.WriteString(shortenName(name))
	}
	return b.String()
}

// shortenName shortens a very long name, so that no message becomes as large as a definition.
func shortenName(name string) string {
	const most = 2 * MaxKey
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

func (p *Place) pathNames() []string {
	if p == nil {
		return nil
	}
	names := make([]string, p.depth)
	for ; p != nil; p = p.parent {
		names[p.depth-1] = p.name
	}
	return names
}

// locatePlace returns the position of a place, or of the value that should contain it. For an
// object or array this is the position of its key, where a reader looks for its name.
func locatePlace(v textValue, at *Place) textPosition {
	found := v.position()
	for _, name := range at.pathNames() {
		key, next := childValue(v, name)
		if next == nil {
			return found
		}
		v, found = next, next.position()
		if kind := v.kind(); key != (textPosition{}) && (kind == expr.KindObject || kind == expr.KindArray) {
			found = key
		}
	}
	if at != nil && at.character > 0 {
		return v.characterAt(at.character - 1)
	}
	return found
}

// childValue returns a part of a value by its name in a path, and the position of its key.
func childValue(v textValue, name string) (textPosition, textValue) {
	switch v.kind() {
	case expr.KindObject:
		if m := memberOf(v.members(), name); m != nil {
			return m.at, m.value
		}
	case expr.KindArray:
		i, err := strconv.Atoi(strings.Trim(name, "[]"))
		if elements := v.elements(); err == nil && i >= 0 && i < len(elements) {
			return textPosition{}, elements[i]
		}
	}
	return textPosition{}, nil
}

// memberOf returns the effective member for a name: the last one, with exact matches preferred.
func memberOf(members []objectMember, name string) *objectMember {
	var found *objectMember
	for i := range members {
		m := &members[i]
		if m.key == name || (found == nil || found.key != name) && strings.EqualFold(m.key, name) {
			found = m
		}
	}
	return found
}
