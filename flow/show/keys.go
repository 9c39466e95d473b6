package show

import (
	"fmt"

	"github.com/troupe-engine/troupe/flow"
)

// permitsOf says what somebody has to be given before it goes on; nil = nothing.
func permitsOf(k *flow.Keys) []string {
	if k == nil {
		return nil
	}
	var list []string
	add := func(l *flow.KeyLimit, what string) {
		if l == nil {
			return
		}
		text := fmt.Sprintf(what, l.Limit)
		if l.PerMS > 0 {
			text += " per " + span(l.PerMS)
		}
		text += prefixed(" for each ", l.Key.Text) + prefixed(", named ", l.Name) + prefixed(", fair to each ", l.Fair.Text) + prefixed(", when full: ", string(l.Full))
		list = append(list, text)
	}
	add(k.Concurrency, "%d in the whole cluster")
	add(k.Rate, "%d begin")
	return append(list, nonEmpty(prefixed("priority ", k.Priority.Text))...)
}
