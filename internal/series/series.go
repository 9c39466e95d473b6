// Package series bounds the number of metric series. Names come from users, and each series costs
// memory permanently.
package series

import "strings"

const (
	// Most is the maximal number of names with a series of their own.
	Most = 200
	// Other is the common name of all further names.
	Other = "other"
)

// Of returns the name under which to count: name itself, or Other if there are too many known
// names.
func Of[V any](known map[string]V, name string) string {
	name = strings.ToValidUTF8(name, "?")
	if _, ok := known[name]; !ok && len(known) >= Most {
		return Other
	}
	return name
}
