package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// memberRecord is a single incarnation of a member.
type memberRecord struct {
	persistence.MemberRow
	until    time.Time // lease end, to the microsecond
	renewed  int64     // time of the last renewal in Unix milliseconds
	renewals int64
}

// Join lets members live beside each other; claims and fences decide about ownership.
func (m *storeModel) Join(_ context.Context, j persistence.Joining) (string, error) {
	until, joined := m.w.storeNow().Add(j.TTL), m.w.storeNow().UnixMilli()
	if n := len(m.members); n > 0 {
		joined = max(joined, m.members[n-1].JoinedAt+1)
	}
	me := &memberRecord{MemberRow: persistence.MemberRow{Incarnation: fmt.Sprintf("%s-%d", j.Name, len(m.members)), Name: j.Name,
		URL: j.URL, Gossip: j.Gossip, Version: j.Version, JoinedAt: joined}, until: until, renewed: m.w.storeNow().UnixMilli()}
	m.members = append(m.members, me)
	m.generation++
	m.w.addTrace("%s joins", me.Incarnation)
	return me.Incarnation, nil
}

// findMember returns a member that may write.
func (m *storeModel) findMember(incarnation string) *memberRecord {
	i := slices.IndexFunc(m.members, func(one *memberRecord) bool { return one.Incarnation == incarnation })
	if i < 0 || m.members[i].FencedAt != 0 {
		return nil
	}
	return m.members[i]
}

// isGone reports whether no member of a name may write any longer.
func (m *storeModel) isGone(name string) bool {
	return !slices.ContainsFunc(m.members, func(one *memberRecord) bool { return one.Name == name && one.FencedAt == 0 })
}

func (m *storeModel) Renew(_ context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	p := persistence.Pulse{Now: m.w.storeNow(), Generation: m.generation, History: m.history, Kept: m.kept}
	one := m.findMember(incarnation)
	switch {
	case one == nil && !slices.ContainsFunc(m.members, func(one *memberRecord) bool { return one.Incarnation == incarnation }):
		return p, persistence.ErrRewound
	case one == nil:
		return p, persistence.ErrFenced
	}
	one.renewals++
	p.Renewals, p.Before = one.renewals, one.renewed
	one.until, one.renewed = m.w.storeNow().Add(ttl), m.w.storeNow().UnixMilli()
	return p, nil
}

func (m *storeModel) BeginHistory(_ context.Context, known string, kept int64) error {
	if known != m.history {
		return nil
	}
	m.histories++
	m.history, m.kept = fmt.Sprint("history-", m.histories), kept
	for _, one := range m.members {
		if one.FencedAt == 0 {
			m.fenceMember(one)
		}
	}
	m.w.addTrace("%s begins", m.history)
	return nil
}

func (m *storeModel) Drain(_ context.Context, incarnation string, drains bool) error {
	one := m.findMember(incarnation)
	if one == nil {
		return persistence.ErrFenced
	}
	if one.Draining != drains {
		one.Draining = drains
		m.generation++
		m.w.addTrace("%s drains: %v", incarnation, drains)
	}
	return nil
}

func (m *storeModel) Leave(_ context.Context, incarnation string) error {
	if one := m.findMember(incarnation); one != nil {
		m.fenceMember(one)
		m.w.addTrace("%s leaves", incarnation)
	}
	return nil
}

func (m *storeModel) Fence(_ context.Context, incarnation string) (bool, error) {
	one := m.findMember(incarnation)
	switch {
	case one == nil:
		return true, nil
	case m.w.storeNow().Before(one.until):
		return false, nil
	}
	m.fenceMember(one)
	m.w.addTrace("%s is fenced", incarnation)
	return true, nil
}

func (m *storeModel) fenceMember(one *memberRecord) {
	one.FencedAt = m.w.storeNow().UnixMilli()
	for shard, owner := range m.owners {
		if owner == one.Incarnation {
			m.owners[shard] = ""
		}
	}
	m.generation++
}

func (m *storeModel) Cluster(context.Context) (*persistence.Cluster, error) {
	now := m.w.storeNow().UnixMilli()
	c := &persistence.Cluster{Generation: m.generation, Now: now, Owners: slices.Clone(m.owners[:])}
	for _, one := range m.members {
		row := one.MemberRow
		if row.Until = one.until.UnixMilli(); row.FencedAt == 0 || row.FencedAt > now-persistence.Remembered.Milliseconds() {
			c.Members = append(c.Members, row)
		}
	}
	return c, nil
}

func (m *storeModel) Claim(_ context.Context, incarnation string, shards []int) ([]int, error) {
	if m.findMember(incarnation) == nil {
		return nil, persistence.ErrFenced
	}
	if n := m.claimShards(shards, incarnation); n > 0 {
		m.w.addTrace("%s claims %d shards", incarnation, n)
	}
	owned := []int{}
	for _, shard := range shards {
		if m.owners[shard] == incarnation {
			owned = append(owned, shard)
		}
	}
	slices.Sort(owned)
	return owned, nil
}

func (m *storeModel) Release(_ context.Context, incarnation string, transfers []persistence.Transfer) error {
	if m.findMember(incarnation) == nil {
		return nil
	}
	given, free := 0, 0
	for _, t := range transfers {
		if m.owners[t.Shard] != incarnation {
			continue
		}
		if m.owners[t.Shard] = ""; m.findMember(t.To) != nil {
			m.owners[t.Shard] = t.To
			given++
		} else {
			free++
		}
	}
	if given+free > 0 {
		m.generation++
		m.w.addTrace("%s gives %d shards to others, and %d to nobody", incarnation, given, free)
	}
	return nil
}

// claimShards assigns the unowned shards among the given ones to a member and returns their number.
func (m *storeModel) claimShards(shards []int, incarnation string) (n int) {
	for _, shard := range shards {
		if m.owners[shard] == "" {
			m.owners[shard] = incarnation
			n++
		}
	}
	if n > 0 {
		m.generation++
	}
	return n
}
