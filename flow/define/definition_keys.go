package define

import "encoding/json"

// KeyFields hold a node's attempts, or a flow's tasks, back while too many of the same key are
// under way in the whole cluster.
type KeyFields struct {
	Concurrency *KeySpec        `json:"concurrency,omitempty"` // how many of a key may be under way at once: attempts of a node, tasks of a flow
	Rate        *KeySpec        `json:"rate,omitempty"`        // how many of a key may begin in a time
	Priority    json.RawMessage `json:"priority,omitempty"`    // a whole number from -100 to 100, or a reference to one: of those that wait for the same key, the higher go first; a flow's is that of its nodes, too
}

// KeySpec is a limit for each key.
type KeySpec struct {
	Name     string   `json:"name,omitempty"`      // limits of the same name share their keys, whatever flow or node they are of; "" = this one alone
	Key      string   `json:"key,omitempty"`       // a reference such as $params.customer, $item.id or $shared.region, or a text; "" = one key for all
	Limit    int      `json:"limit"`               // how many, 1 at least
	Per      Duration `json:"per,omitzero"`        // rate: in what time
	WhenFull string   `json:"when_full,omitempty"` // what happens to one for whom there is no room: queue, it waits; refuse, it fails; cancel_running (concurrency), the oldest is canceled and makes room
	Fair     string   `json:"fair,omitempty"`      // a reference or a text as in key: of those that wait, each of these has its turn
}

// Words of when_full.
const (
	FullQueue  = "queue"
	FullRefuse = "refuse"
	FullCancel = "cancel_running"
)
