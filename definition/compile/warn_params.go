package compile

import (
	"slices"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// ownParams maps kinds to the params that they read themselves. Params of other kinds go to the
// handler; these kinds have none.
var ownParams = map[flow.Kind][]string{
	flow.KindTimer:     {"delay_ms"},
	flow.KindWaitEvent: {"signal_key", "timeout_ms"},
	flow.KindApproval:  append([]string{"approval_key"}, flow.QuestionParams...),
}

// warnMisspelled warns of a param that is probably a misspelling of a param that the kind reads.
func (c *graphWarner) warnMisspelled(p *flow.PlanNode, at *definition.Place) {
	own := ownParams[p.Kind]
	if own == nil {
		return
	}
	members, _ := expr.Members(p.Params)
	for _, m := range members {
		if slices.Contains(own, m.Key) {
			continue
		}
		if meant := flow.Nearest(m.Key, own); meant != "" {
			c.Warnf(at.Key(m.Key), "no %s reads this: did you mean %s?", p.Kind, meant)
			c.Mute(at.Key(meant)) // suppresses the problem that the intended param is missing
		}
	}
}
