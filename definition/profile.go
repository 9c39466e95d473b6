package definition

import (
	"bytes"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Profiles of definitions. A profile defines the meaning of absent fields.
const (
	// ProfileTroupe is the safe default: written values take precedence, and errors fail.
	ProfileTroupe = "troupe"
	// ProfilePocketflow keeps the behaviour that clients of PocketFlow's routes rely on.
	ProfilePocketflow = "pocketflow"
	// ProfilePgflow has the names and defaults of pgflow. It is for dags.
	ProfilePgflow = string(flow.ProfilePgflow)
)

const profileField = "profile"

// WriteProfile sets the profile of a definition without one, and returns its JSON text with the
// profile at the beginning. All other bytes of the text stay unchanged. So a version has the same
// meaning whichever route published it.
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

// CutProfile removes the profile that WriteProfile has added to a text.
func CutProfile(text []byte, profile string) []byte {
	start := bytes.IndexByte(text, '{') + 1
	if rest, found := bytes.CutPrefix(text[start:], profilePrefix(profile)); found {
		return slices.Concat(text[:start], rest)
	}
	return text
}

// profilePrefix returns the member that WriteProfile adds at the beginning of the object.
func profilePrefix(profile string) []byte {
	b := append(expr.AppendQuote(nil, profileField), ':')
	return append(expr.AppendQuote(b, profile), ", "...)
}

// replaceEmptyWord replaces a null or an empty text by a word. It returns false if the JSON object
// does not have the field.
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
