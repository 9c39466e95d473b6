package actors

import (
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Stirred queues keys of this member's shards that other members reported as changed.
func (m *Member) Stirred(keys engine.Keys) {
	for _, key := range keys.Names {
		m.limiter.EnqueueKey(key, keys.Anew)
	}
}

// addPermits adds the changes to permit rows to the commit of the events that they follow from.
func (t taskJournal) addPermits(c *persistence.Commit, e flow.Effect) {
	if c.Permits == nil {
		c.Permits = &persistence.PermitChanges{}
	}
	switch e := e.(type) {
	case flow.Ask:
		c.Permits.Ask = append(c.Permits.Ask, persistence.PermitRow{
			Holder: flow.JobID(t.id, e.Address), Key: e.Key, Limit: e.Limit, PerMS: e.PerMS,
			Full: string(e.Full), Priority: e.Priority, Fair: e.Fair,
			AskedAt: e.AskedAt, Turn: e.Turn,
		})
	case flow.Held:
		c.Permits.Hold = append(c.Permits.Hold, persistence.PermitID{Holder: flow.JobID(t.id, e.Address), Key: e.Key})
	case flow.Release:
		c.Permits.Release = append(c.Permits.Release, persistence.PermitID{Holder: flow.JobID(t.id, e.Address), Key: e.Key})
	}
}

// splitAsks separates permit requests from other effects.
func splitAsks(effects []flow.Effect) (asks []flow.Ask, others []flow.Effect) {
	for _, e := range effects {
		if ask, ok := e.(flow.Ask); ok {
			asks = append(asks, ask)
			continue
		}
		others = append(others, e)
	}
	return asks, others
}

// requeueAsks queues the keys of pending permit requests after a reload, because the task may have
// missed a decision.
func (m jobCarrying) requeueAsks(asks []flow.Ask) {
	for _, ask := range asks {
		m.limiter.NotifyKeyChange(ask.Key, true)
	}
}

// permitsOf returns the effects that release the permits that a task holds or waits for.
func (m taskLeftovers) permitsOf(task string) ([]flow.Effect, error) {
	ctx, cancel := m.work.StoreCall()
	defer cancel()
	rows, err := m.store.PermitsOf(ctx, task)
	var effects []flow.Effect
	for _, row := range rows {
		if _, a, err := flow.ParseJobID(row.Holder); err == nil {
			effects = append(effects, flow.Release{Address: a, Key: row.Key})
		}
	}
	return effects, err
}
