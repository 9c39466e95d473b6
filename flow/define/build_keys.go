package define

import (
	"encoding/json"
	"strconv"
	"time"
)

// AtMost lets no more than so many tasks of a key be under way at once, in the whole cluster. The
// key is a reference such as $params.customer, or a text; "" is one key for all.
func (b *Builder) AtMost(limit int, key Ref) *Builder {
	b.definition.setConcurrency(limit, key)
	return b
}

// Rate lets no more than so many tasks of a key begin in a time.
func (b *Builder) Rate(limit int, per time.Duration, key Ref) *Builder {
	b.definition.setRate(limit, per, key)
	return b
}

// Priority is that of its tasks, and of its nodes that have none of their own, among those that
// wait for the same key.
func (b *Builder) Priority(p int) *Builder { b.definition.setPriority(p); return b }

// Keys says everything about keys at once.
func (b *Builder) Keys(k KeyFields) *Builder { b.definition.KeyFields = k; return b }

// AtMost lets no more than so many attempts of a key be under way at once, in the whole cluster.
// The key is a reference such as $params.customer or, of a node of many units, $item.id, or a text;
// "" is one key for all.
func (n *NodeBuilder) AtMost(limit int, key Ref) *NodeBuilder {
	n.n.setConcurrency(limit, key)
	return n
}

// Rate lets no more than so many attempts of a key begin in a time.
func (n *NodeBuilder) Rate(limit int, per time.Duration, key Ref) *NodeBuilder {
	n.n.setRate(limit, per, key)
	return n
}

// Priority is that of its attempts among those that wait for the same key.
func (n *NodeBuilder) Priority(p int) *NodeBuilder { n.n.setPriority(p); return n }

// Keys says everything about keys at once.
func (n *NodeBuilder) Keys(k KeyFields) *NodeBuilder { n.n.KeyFields = k; return n }

// setConcurrency sets concurrency.
func (f *KeyFields) setConcurrency(limit int, key Ref) {
	f.Concurrency = &KeySpec{Limit: limit, Key: string(key)}
}

// setRate sets rate.
func (f *KeyFields) setRate(limit int, per time.Duration, key Ref) {
	f.Rate = &KeySpec{Limit: limit, Per: writtenDuration(per), Key: string(key)}
}

// setPriority sets priority.
func (f *KeyFields) setPriority(p int) { f.Priority = json.RawMessage(strconv.Itoa(p)) }
