package cluster

import (
	"slices"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// mostItem is the maximum size in bytes of one request or response. A larger one would break the
// connection for all others.
const mostItem = mostRead - 64<<10

// MostValue is the maximum size of values in bytes. It leaves room for a response that contains a
// value twice, such as an output that is also part of shared.
const MostValue = 24 << 20

// questionOf encodes a message as a request.
func questionOf(m engine.Message) ([]byte, error) {
	b, err := engine.Marshal(m)
	if err == nil && len(b) > mostItem {
		err = tooLarge("what is asked of another member", len(b))
	}
	return b, err
}

// answerOf encodes a message as a response. It replaces outcomes that do not fit by refusals.
func answerOf(m engine.Message) []byte {
	b, err := engine.Marshal(m)
	if err == nil && len(b) > mostItem {
		err = tooLarge("what another member answers", len(b))
		if outcomes, many := m.(*engine.Outcomes); many {
			b, err = engine.Marshal(fitOutcomes(*outcomes))
		}
	}
	if err != nil {
		b, _ = engine.Marshal(&engine.Refusal{Err: err})
	}
	return b
}

// fitOutcomes refuses outcomes that are too large by themselves. For other outcomes that do not
// fit, the caller has to repeat the order, which has no second effect.
func fitOutcomes(all engine.Outcomes) *engine.Outcomes {
	all = slices.Clone(all)
	room := mostItem
	for i := range all {
		b, _ := engine.Marshal(&engine.Outcomes{all[i]}) // each was encoded before
		switch size := len(b); {
		case size > mostItem:
			all[i] = engine.Outcome{Err: tooLarge("what another member answers", size)}
		case size > room-256*(len(all)-i): // reserves room for later refusals
			all[i] = engine.Outcome{Err: flow.Errorf(flow.Busy, "the answer is too large to be sent with others: ask again")}
		default:
			room -= size
		}
	}
	return &all
}

func tooLarge(what string, size int) error {
	return flow.Errorf(flow.Limit, "%s has %d bytes, more than the %d that members send each "+
		"other: use smaller values, or ask the member that has the task", what, size, mostItem)
}
