package define

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/definition"
)

// AtMost limits how many tasks of a key run at once in the whole cluster. The key is a reference
// such as $params.customer, or a text; "" means one key for all.
func (b *Builder) AtMost(limit int, key Ref) *Builder {
	setConcurrency(&b.definition.KeyFields, limit, key)
	return b
}

// Rate limits how many tasks of a key start in a period.
func (b *Builder) Rate(limit int, per time.Duration, key Ref) *Builder {
	setRate(&b.definition.KeyFields, limit, per, key)
	return b
}

// Priority sets the priority of the tasks of the flow among requests that wait for the same key. It
// also applies to nodes without a priority of their own.
func (b *Builder) Priority(p int) *Builder { setPriority(&b.definition.KeyFields, p); return b }

// Keys sets all fields about keys.
func (b *Builder) Keys(k definition.KeyFields) *Builder { b.definition.KeyFields = k; return b }

// AtMost limits how many attempts of a key run at once in the whole cluster. The key is a text or a
// reference such as $params.customer, or $item.id for a node with many units; "" means one key for
// all.
func (n *NodeBuilder) AtMost(limit int, key Ref) *NodeBuilder {
	setConcurrency(&n.n.KeyFields, limit, key)
	return n
}

// Rate limits how many attempts of a key start in a period.
func (n *NodeBuilder) Rate(limit int, per time.Duration, key Ref) *NodeBuilder {
	setRate(&n.n.KeyFields, limit, per, key)
	return n
}

// Priority sets the priority of the attempts of the node among requests that wait for the same key.
func (n *NodeBuilder) Priority(p int) *NodeBuilder { setPriority(&n.n.KeyFields, p); return n }

// Keys sets all fields about keys.
func (n *NodeBuilder) Keys(k definition.KeyFields) *NodeBuilder { n.n.KeyFields = k; return n }

func setConcurrency(f *definition.KeyFields, limit int, key Ref) {
	f.Concurrency = &definition.KeySpec{Limit: limit, Key: string(key)}
}

func setRate(f *definition.KeyFields, limit int, per time.Duration, key Ref) {
	f.Rate = &definition.KeySpec{Limit: limit, Per: definition.DurationOf(per), Key: string(key)}
}

func setPriority(f *definition.KeyFields, p int) { f.Priority = json.RawMessage(strconv.Itoa(p)) }
