package api

import (
	"cmp"
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// KindReference describes a kind of error in the reference documentation.
type KindReference struct {
	Kind   flow.ErrorKind
	Status int
	Hint   string // advice if the error itself contains none
}

// ErrorKinds returns the kinds of errors that clients get, ordered by status. Moved is omitted,
// because clients get busy instead.
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
