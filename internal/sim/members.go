package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

type membership struct {
	incarnation string
	until       time.Time
	fenced      bool
}

// Join has members live beside each other: who may own what is decided by claims and fences.
func (m *model) Join(_ context.Context, j persistence.Joining) (string, error) {
	me := &membership{incarnation: fmt.Sprintf("%s-%d", j.Name, len(m.members)), until: m.w.storeNow().Add(j.TTL)}
	m.members = append(m.members, me)
	m.generation++
	m.w.say("%s joins", me.incarnation)
	return me.incarnation, nil
}

// member finds one that may write.
func (m *model) member(incarnation string) *membership {
	i := slices.IndexFunc(m.members, func(one *membership) bool { return one.incarnation == incarnation })
	if i < 0 || m.members[i].fenced {
		return nil
	}
	return m.members[i]
}

func (m *model) Renew(_ context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	one := m.member(incarnation)
	if one == nil {
		return persistence.Pulse{}, persistence.ErrFenced
	}
	one.until = m.w.storeNow().Add(ttl)
	return persistence.Pulse{Now: m.w.storeNow(), Generation: m.generation}, nil
}

func (m *model) Leave(_ context.Context, incarnation string) error {
	if one := m.member(incarnation); one != nil {
		m.end(one)
		m.w.say("%s leaves", incarnation)
	}
	return nil
}

func (m *model) Fence(_ context.Context, incarnation string) (bool, error) {
	one := m.member(incarnation)
	switch {
	case one == nil:
		return true, nil
	case m.w.storeNow().Before(one.until):
		return false, nil
	}
	m.end(one)
	m.w.say("%s is fenced", incarnation)
	return true, nil
}

func (m *model) end(one *membership) {
	one.fenced = true
	for shard, owner := range m.owners {
		if owner == one.incarnation {
			m.owners[shard] = ""
		}
	}
	m.generation++
}

func (m *model) Cluster(context.Context) (*persistence.Cluster, error) {
	c := &persistence.Cluster{Generation: m.generation, Now: m.w.storeNow().UnixMilli(), Owners: slices.Clone(m.owners[:])}
	for i, one := range m.members {
		row := persistence.MemberRow{Incarnation: one.incarnation, Name: one.incarnation, JoinedAt: int64(i), Until: one.until.UnixMilli()}
		if one.fenced {
			row.FencedAt = 1
		}
		c.Members = append(c.Members, row)
	}
	return c, nil
}

func (m *model) Claim(_ context.Context, incarnation string, shards []int) ([]int, error) {
	if m.member(incarnation) == nil {
		return nil, persistence.ErrFenced
	}
	var owned []int
	for _, shard := range shards {
		if m.owners[shard] == "" {
			m.owners[shard] = incarnation
			m.generation++
		}
		if m.owners[shard] == incarnation {
			owned = append(owned, shard)
		}
	}
	slices.Sort(owned)
	return owned, nil
}

func (m *model) Release(_ context.Context, incarnation string, shards []int) error {
	for _, shard := range shards {
		if m.owners[shard] == incarnation {
			m.owners[shard] = ""
			m.generation++
		}
	}
	return nil
}
