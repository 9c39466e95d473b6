package show

import (
	"fmt"

	"github.com/troupe-engine/troupe/flow"
)

// permitsOf describes the permits that a task or an attempt needs before it starts. It returns nil
// if no permit is needed.
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
			text += " per " + durationText(l.PerMS)
		}
		text += withPrefix(" for each ", l.Key.Text) + withPrefix(", named ",
			l.Name) + withPrefix(", fair to each ", l.Fair.Text) + withPrefix(", when full: ", string(l.Full))
		list = append(list, text)
	}
	add(k.Concurrency, "%d in the whole cluster")
	add(k.Rate, "%d begin")
	return append(list, nonEmpty(withPrefix("priority ", k.Priority.Text))...)
}
