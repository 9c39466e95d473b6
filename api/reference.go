package api

import (
	"cmp"
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// KindReference describes a kind of error for the reference.
type KindReference struct {
	Kind   flow.ErrorKind
	Status int
	Hint   string // what can be done about it when the error itself does not say so
}

// ErrorKinds returns the kinds of errors that clients get, by their status. A moved task is
// answered as busy.
func ErrorKinds() []KindReference {
	var list []KindReference
	for kind, k := range kinds {
		if kind != flow.Moved {
			list = append(list, KindReference{kind, k.status, k.hint})
		}
	}
	slices.SortFunc(list, func(a, b KindReference) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}
