package define

import (
	"encoding/json"
	"strconv"
	"time"
)

// AtMost limits how many tasks of a key run at once in the whole cluster. The key is a reference
// such as $params.customer, or a text; "" means one key for all.
func (b *Builder) AtMost(limit int, key Ref) *Builder {
	b.definition.setConcurrency(limit, key)
	return b
}

// Rate limits how many tasks of a key start in a period.
func (b *Builder) Rate(limit int, per time.Duration, key Ref) *Builder {
	b.definition.setRate(limit, per, key)
	return b
}

// Priority sets the priority of its tasks, and of nodes without their own, among requests that wait
// for the same key.
func (b *Builder) Priority(p int) *Builder { b.definition.setPriority(p); return b }

// Keys sets all fields about keys.
func (b *Builder) Keys(k KeyFields) *Builder { b.definition.KeyFields = k; return b }

// AtMost limits how many attempts of a key run at once in the whole cluster. The key is a text or a
// reference such as $params.customer, or $item.id for a node with many units; "" means one key for
// all.
func (n *NodeBuilder) AtMost(limit int, key Ref) *NodeBuilder {
	n.n.setConcurrency(limit, key)
	return n
}

// Rate limits how many attempts of a key start in a period.
func (n *NodeBuilder) Rate(limit int, per time.Duration, key Ref) *NodeBuilder {
	n.n.setRate(limit, per, key)
	return n
}

// Priority sets the priority of its attempts among requests that wait for the same key.
func (n *NodeBuilder) Priority(p int) *NodeBuilder { n.n.setPriority(p); return n }

// Keys sets all fields about keys.
func (n *NodeBuilder) Keys(k KeyFields) *NodeBuilder { n.n.KeyFields = k; return n }

func (f *KeyFields) setConcurrency(limit int, key Ref) {
	f.Concurrency = &KeySpec{Limit: limit, Key: string(key)}
}

func (f *KeyFields) setRate(limit int, per time.Duration, key Ref) {
	f.Rate = &KeySpec{Limit: limit, Per: writtenDuration(per), Key: string(key)}
}

func (f *KeyFields) setPriority(p int) { f.Priority = json.RawMessage(strconv.Itoa(p)) }
