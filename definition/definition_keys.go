package definition

import "encoding/json"

// KeyFields limit how many attempts of a node, or tasks of a flow, with the same key run in the
// whole cluster.
type KeyFields struct {
	// maximum number of a key at once: attempts of a node, tasks of a flow
	Concurrency *KeySpec `json:"concurrency,omitempty"`
	// maximum number of a key that start in a period
	Rate *KeySpec `json:"rate,omitempty"`
	// whole number from -100 to 100, or a reference to one: higher priorities go first among
	// requests for the same key; that of a flow also applies to its nodes
	Priority json.RawMessage `json:"priority,omitempty"`
}

// KeySpec is a limit that applies to each key separately.
type KeySpec struct {
	// limits with the same name share their keys, in any flow or node; "" = for this one alone
	Name string `json:"name,omitempty"`
	// reference such as $params.customer, $item.id or $shared.region, or a text; "" = one key for
	// all
	Key   string   `json:"key,omitempty"`
	Limit int      `json:"limit"`        // maximum number, at least 1
	Per   Duration `json:"per,omitzero"` // rate: the period
	// what happens when the key is full: queue, it waits; refuse, it fails; cancel_running
	// (concurrency), the oldest one is canceled to make room
	WhenFull string `json:"when_full,omitempty"`
	// reference or text as in key: waiting requests are served round robin by this value
	Fair string `json:"fair,omitempty"`
}

// Values of when_full.
const (
	FullQueue  = "queue"
	FullRefuse = "refuse"
	FullCancel = "cancel_running"
)
