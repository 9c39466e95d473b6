package flow

import "github.com/troupe-engine/troupe/flow/types"

// Nearest is the name among some that a word is probably a misspelling of, or "". Messages ask for
// it.
func Nearest(word string, names []string) string { return types.Nearest(word, names) }
