package flow

import (
	"strings"
	"unicode/utf8"
)

// NoText is what is wrong with a name that is not IsText.
const NoText = "is not UTF-8 text, or holds the character U+0000: no store can keep it"

// IsText says whether a name is one that every store can keep and look for. Values may hold anything that
// JSON may.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// CheckText refuses names that are not IsText; what they are is said in the error.
func CheckText(what string, names ...string) error {
	for _, name := range names {
		if !IsText(name) {
			return Errorf(Invalid, "%s %.80q %s", what, name, NoText)
		}
	}
	return nil
}

// CheckName refuses what CheckText refuses, and what is too long for a name.
func CheckName(what, name string) error {
	if len(name) > MaxName {
		return Errorf(Invalid, "%s has %d bytes, more than the limit of %d", what, len(name), MaxName)
	}
	return CheckText(what, name)
}

// CheckDescription is CheckName for a text that people read.
func CheckDescription(text string) error {
	if len(text) > MaxDescription {
		return Errorf(Invalid, "the description has %d bytes, more than the limit of %d", len(text), MaxDescription)
	}
	return CheckText("the description", text)
}
