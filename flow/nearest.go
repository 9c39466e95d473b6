package flow

import "github.com/troupe-engine/troupe/flow/types"

// Nearest returns the name of which word is probably a misspelling, or "". Error messages use it.
func Nearest(word string, names []string) string { return types.Nearest(word, names) }
