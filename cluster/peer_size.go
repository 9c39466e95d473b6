package cluster

import (
	"slices"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// mostItem is how many bytes one question may have, or one answer: what is larger would end the
// line for all others.
const mostItem = mostRead - 64<<10

// MostValue is how large values may be, so that an answer which holds one twice, as an output that
// became a part of shared, fits through a line.
const MostValue = 24 << 20

// questionOf is a message as it is asked.
func questionOf(m engine.Message) ([]byte, error) {
	b, err := engine.Marshal(m)
	if err == nil && len(b) > mostItem {
		err = tooLarge("what is asked of another member", len(b))
	}
	return b, err
}

// answerOf is a message as it is answered. Of outcomes those are refused that do not fit.
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

// fitOutcomes refuses the outcomes that are too large by themselves, and has those asked for again
// for which there is no room beside the others: a second time an order has no effect.
func fitOutcomes(all engine.Outcomes) *engine.Outcomes {
	all = slices.Clone(all)
	room := mostItem
	for i := range all {
		b, _ := engine.Marshal(&engine.Outcomes{all[i]}) // one of many that could be written
		switch size := len(b); {
		case size > mostItem:
			all[i] = engine.Outcome{Err: tooLarge("what another member answers", size)}
		case size > room-256*(len(all)-i): // for the refusals to come
			all[i] = engine.Outcome{Err: flow.Errorf(flow.Busy, "the answer is too large to be sent with others: ask again")}
		default:
			room -= size
		}
	}
	return &all
}

func tooLarge(what string, size int) error {
	return flow.Errorf(flow.Limit, "%s has %d bytes, more than the %d that members send each other: use smaller values, or ask the member that has the task", what, size, mostItem)
}
