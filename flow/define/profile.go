package define

import (
	"bytes"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Profiles that a definition may name. They decide what the definition means where it says nothing
// itself.
const (
	// ProfileTroupe is the safe default: what an author wrote wins, and what is wrong fails.
	ProfileTroupe = "troupe"
	// ProfilePocketflow keeps the behaviour that clients of PocketFlow's routes rely on.
	ProfilePocketflow = "pocketflow"
	// ProfilePgflow has the names and the defaults of pgflow. It is for dags.
	ProfilePgflow = string(flow.ProfilePgflow)
)

const profileField = "profile"

// WriteProfile sets the profile of a definition that names none, and returns its JSON text with the
// profile in front. The rest of the text stays byte for byte. A version therefore means the same,
// whichever route published it.
func WriteProfile(d *Definition, text []byte, profile string) []byte {
	if d.Profile != "" {
		return text
	}
	d.Profile = profile
	if replaced, found := replaceEmptyWord(text, profileField, profile); found {
		return replaced
	}
	start := bytes.IndexByte(text, '{') + 1
	if start == 0 {
		return text
	}
	prefix := profilePrefix(profile)
	if rest := bytes.TrimLeft(text[start:], " \t\r\n"); bytes.HasPrefix(rest, []byte{'}'}) {
		prefix = bytes.TrimSuffix(prefix, []byte(", "))
	}
	return slices.Concat(text[:start], prefix, text[start:])
}

// CutProfile returns a text without the profile that WriteProfile has put in front of it.
func CutProfile(text []byte, profile string) []byte {
	start := bytes.IndexByte(text, '{') + 1
	if rest, found := bytes.CutPrefix(text[start:], profilePrefix(profile)); found {
		return slices.Concat(text[:start], rest)
	}
	return text
}

// profilePrefix returns the member that WriteProfile puts at the beginning of a definition's
// object.
func profilePrefix(profile string) []byte {
	b := append(expr.AppendQuote(nil, profileField), ':')
	return append(expr.AppendQuote(b, profile), ", "...)
}

// replaceEmptyWord puts a word in the place of a null, or of an empty text. Found is false if an
// object in JSON does not have the field.
func replaceEmptyWord(text []byte, name, word string) (replaced []byte, found bool) {
	root, ok := readJSON(trimBOM(text), &Reporter{}).(*jsonValue)
	if !ok || root.kind() != expr.KindObject {
		return text, true
	}
	m := memberOf(root.members(), name)
	if m == nil {
		return text, false
	}
	v := m.value.(*jsonValue)
	return slices.Concat(root.source.text[:v.start], expr.AppendQuote(nil, word), root.source.text[v.end:]), true
}
