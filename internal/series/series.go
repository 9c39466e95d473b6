// Package series bounds for how many names metrics have series of their own: names come from users,
// and each series costs memory for ever.
package series

import "strings"

const (
	// Most is how many names have a series.
	Most = 200
	// Other is the name of all others together.
	Other = "other"
)

// Of is the name by which something is counted, among those that are counted already.
func Of[V any](known map[string]V, name string) string {
	name = strings.ToValidUTF8(name, "?")
	if _, ok := known[name]; !ok && len(known) >= Most {
		return Other
	}
	return name
}
