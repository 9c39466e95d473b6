package model

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

// Permits stores permits in plain maps. It has no lock and no clock.
type Permits struct {
	rows map[permitID]*persistence.PermitRow
	keys map[string]*rememberedKey
}

type permitID struct {
	task string
	persistence.PermitID
}

type rememberedKey struct {
	persistence.KeyState
	idleAt int64
}

// NewPermits returns an empty Permits.
func NewPermits() *Permits {
	return &Permits{rows: map[permitID]*persistence.PermitRow{}, keys: map[string]*rememberedKey{}}
}

// Clone returns a copy.
func (p *Permits) Clone() *Permits {
	c := NewPermits()
	for id, r := range p.rows {
		row := *r
		c.rows[id] = &row
	}
	for key, k := range p.keys {
		is := *k
		c.keys[key] = &is
	}
	return c
}

// Commit applies the changes of a commit.
func (p *Permits) Commit(task string, c *persistence.PermitChanges) {
	if c == nil {
		return
	}
	for _, r := range c.Ask {
		id := permitID{task, persistence.PermitID{Holder: r.Holder, Key: r.Key}}
		if p.rows[id] == nil {
			r.Task = task
			p.rows[id] = &r
		}
	}
	for _, id := range c.Hold {
		if r := p.rows[permitID{task, id}]; r != nil {
			r.State = persistence.PermitHeld
		}
	}
	for _, id := range c.Release {
		delete(p.rows, permitID{task, id})
	}
}

// Drop deletes the permits of a task.
func (p *Permits) Drop(task string) {
	maps.DeleteFunc(p.rows, func(id permitID, _ *persistence.PermitRow) bool { return id.task == task })
}

// Rule makes a decision about a key.
func (p *Permits) Rule(now int64, q persistence.PermitQuestion) persistence.Ruling {
	key := p.keys[q.Key]
	if key == nil {
		key = &rememberedKey{}
		p.keys[q.Key] = key
	}
	v := p.buildBook(now, q.Key, key.KeyState).Decide()
	key.KeyState, key.idleAt = v.State, v.IdleAt
	ruling := persistence.Ruling{Again: v.Again, More: v.More}
	p.redeliverVerdicts(now, q, &ruling)
	tell := func(rows []persistence.PermitRow, change func(*persistence.PermitRow)) {
		for _, r := range rows {
			row := p.rows[idOf(&r)]
			change(row)
			row.ToldAt = now
			ruling.Add(*row)
		}
	}
	tell(v.Given, func(r *persistence.PermitRow) { r.State, r.GivenAt = persistence.PermitGiven, now })
	tell(v.Refused, func(r *persistence.PermitRow) { r.State, r.GivenAt = persistence.PermitRefused, now })
	tell(v.Evicted, func(r *persistence.PermitRow) { r.Evicted = true })
	return ruling
}

// redeliverVerdicts adds the rows of earlier decisions that have been unacknowledged for long.
func (p *Permits) redeliverVerdicts(now int64, q persistence.PermitQuestion, ruling *persistence.Ruling) {
	var untold []*persistence.PermitRow
	for _, r := range p.rowsOf(q.Key) {
		due := q.Anew || r.ToldAt <= now-persistence.PermitToldMS || r.ToldAt > now
		if due && (r.State == persistence.PermitGiven || r.State == persistence.PermitRefused || r.Evicted) {
			untold = append(untold, r)
		}
	}
	slices.SortStableFunc(untold, func(a, b *persistence.PermitRow) int { return cmp.Compare(a.ToldAt, b.ToldAt) })
	for _, r := range takeFirst(untold, persistence.PermitsToldAtOnce) {
		r.ToldAt = now
		ruling.Add(*r)
	}
	ruling.Retold = len(untold) > 0
}

func idOf(r *persistence.PermitRow) permitID {
	return permitID{r.Task, persistence.PermitID{Holder: r.Holder, Key: r.Key}}
}

// rowsOf returns a key's rows, the oldest holders first.
func (p *Permits) rowsOf(key string) (list []*persistence.PermitRow) {
	for _, r := range p.rows {
		if r.Key == key {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *persistence.PermitRow) int {
		return cmp.Or(cmp.Compare(a.GivenAt, b.GivenAt), cmp.Compare(a.AskedAt, b.AskedAt),
			cmp.Compare(a.Task, b.Task), cmp.Compare(a.Holder, b.Holder))
	})
	return list
}

func (p *Permits) buildBook(now int64, key string, state persistence.KeyState) *persistence.PermitBook {
	b := &persistence.PermitBook{Now: now, State: state}
	for _, r := range p.rowsOf(key) {
		switch r.State {
		case persistence.PermitWaits:
			b.Waiting = append(b.Waiting, *r)
			if r.Full == "refuse" {
				b.Hasty = append(b.Hasty, *r)
			}
		case persistence.PermitGiven, persistence.PermitHeld:
			b.Held++
			if r.Evicted {
				b.Evicted++
			} else {
				b.Running = append(b.Running, *r)
			}
		}
	}
	persistence.InTurn(b.Waiting, state.Cursor)
	b.Waiting, b.Hasty = takeFirst(b.Waiting, persistence.PermitsAtOnce), takeFirst(b.Hasty, persistence.HastyAtOnce)
	return b
}

// Open returns the keys with waiting rows or unacknowledged decisions.
func (p *Permits) Open(shards persistence.ShardSet, after string, limit int) []string {
	keys := map[string]bool{}
	for _, r := range p.rows {
		if r.Key > after && shards.Has(r.Key) && (r.State != persistence.PermitHeld || r.Evicted) {
			keys[r.Key] = true
		}
	}
	return takeFirst(slices.Sorted(maps.Keys(keys)), limit)
}

// Of returns the permits that a task waits for or has.
func (p *Permits) Of(task string) []persistence.PermitRow {
	list := []persistence.PermitRow{}
	for id, r := range p.rows {
		if id.task == task {
			row := *r
			row.Before = p.countBefore(r)
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b persistence.PermitRow) int {
		return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Key, b.Key))
	})
	return list
}

// countBefore returns the number of rows of the same Fair that wait before a waiting row.
func (p *Permits) countBefore(r *persistence.PermitRow) (n int) {
	if r.State != persistence.PermitWaits {
		return 0
	}
	for _, other := range p.rows {
		if other.Key == r.Key && other.State == persistence.PermitWaits && other.Fair == r.Fair && persistence.Precedes(other, r) {
			n++
		}
	}
	return min(n, persistence.MostBefore)
}

// Waiting returns the waiting rows of a key.
func (p *Permits) Waiting(key string) (list []persistence.PermitRow) {
	for _, r := range p.rowsOf(key) {
		if r.State == persistence.PermitWaits {
			list = append(list, *r)
		}
	}
	return list
}

// Forget deletes the state of up to limit keys that have been unused for a while, and returns how
// many it deleted.
func (p *Permits) Forget(now int64, limit int) (forgotten int) {
	maps.DeleteFunc(p.keys, func(_ string, k *rememberedKey) bool {
		gone := k.idleAt <= now && forgotten < limit
		if gone {
			forgotten++
		}
		return gone
	})
	return forgotten
}

func (s *store) Rule(ctx context.Context, incarnation string, q persistence.PermitQuestion) (persistence.Ruling, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return persistence.Ruling{}, err
	}
	defer leave()
	if s.findMember(incarnation) == nil {
		return persistence.Ruling{}, persistence.ErrFenced
	}
	return s.permits.Rule(s.nowMillis(), q), nil
}

func (s *store) OpenKeys(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.permits.Open(shards, after, limit), nil
}

func (s *store) PermitsOf(ctx context.Context, task string) ([]persistence.PermitRow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.permits.Of(task), nil
}

func (s *store) ForgetKeys(ctx context.Context, limit int) (int, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	return s.permits.Forget(s.nowMillis(), limit), nil
}
