package model

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

func (s *store) Join(ctx context.Context, j persistence.Joining) (string, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	switch {
	case len(s.members) == 0:
		s.cluster = j.Cluster
	case s.cluster != j.Cluster:
		return "", persistence.Stranger(s.cluster, j.Cluster)
	}
	now, last := s.nowMillis(), int64(0)
	alone := true
	for i, m := range s.members {
		if m.FencedAt != 0 || m.Until <= now {
			continue
		}
		if alone = false; s.seals[i] != j.Seal {
			return "", persistence.Unsealed()
		}
	}
	if err := cmp.Or(persistence.Fits(s.format, j.Format, alone), persistence.Placed(s.values, j.Values, alone)); err != nil {
		return "", err
	}
	s.values = cmp.Or(j.Values, s.values)
	if n := len(s.members); n > 0 {
		last = s.members[n-1].JoinedAt
	}
	m := &persistence.MemberRow{Incarnation: fmt.Sprintf("%s-%d", j.Name, len(s.members)+1),
		Name: j.Name, URL: j.URL, Gossip: j.Gossip, Version: j.Version, Format: j.Format,
		JoinedAt: max(now, last+1), Until: now + j.TTL.Milliseconds(), TTL: j.TTL.Milliseconds()}
	s.members, s.seals = append(s.members, m), append(s.seals, j.Seal)
	s.bumpGeneration()
	return m.Incarnation, nil
}

func (s *store) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return persistence.Pulse{}, err
	}
	defer leave()
	m := s.findMember(incarnation)
	if m == nil {
		p := persistence.Pulse{Now: s.options.Now(), History: fmt.Sprint(s.history), Kept: s.kept}
		if !slices.ContainsFunc(s.members, func(m *persistence.MemberRow) bool { return m.Incarnation == incarnation }) {
			return p, persistence.ErrRewound
		}
		return p, persistence.ErrFenced
	}
	before := m.Until - m.TTL
	m.Until, m.TTL = s.nowMillis()+ttl.Milliseconds(), ttl.Milliseconds()
	s.renewals[incarnation]++
	return persistence.Pulse{Now: s.options.Now(), Generation: s.generation, Format: s.format,
		Renewals: s.renewals[incarnation], Before: before, History: fmt.Sprint(s.history), Kept: s.kept}, nil
}

func (s *store) BeginHistory(ctx context.Context, known string, kept int64) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if known != fmt.Sprint(s.history) {
		return nil
	}
	for _, m := range s.members {
		s.kept = max(s.kept, m.Until-m.TTL)
	}
	s.kept = cmp.Or(kept, s.kept)
	for _, m := range s.members {
		if m.FencedAt == 0 {
			s.fenceMember(m)
		}
	}
	s.history++
	return nil
}

func (s *store) Drain(ctx context.Context, incarnation string, drains bool) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	m := s.findMember(incarnation)
	if m == nil {
		return persistence.ErrFenced
	}
	if m.Draining != drains {
		m.Draining = drains
		s.generation++
	}
	return nil
}

func (s *store) Leave(ctx context.Context, incarnation string) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if m := s.findMember(incarnation); m != nil {
		s.fenceMember(m)
	}
	return nil
}

func (s *store) Fence(ctx context.Context, incarnation string) (bool, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	m := s.findMember(incarnation)
	if m != nil && !m.Over(s.nowMillis()) {
		return false, nil
	}
	if m != nil {
		s.fenceMember(m)
	}
	return true, nil
}

// fenceMember ends a member and frees its shards.
func (s *store) fenceMember(m *persistence.MemberRow) {
	m.FencedAt = s.nowMillis()
	for shard, owner := range s.owners {
		if owner == m.Incarnation {
			s.owners[shard], s.previousOwners[shard] = "", owner
		}
	}
	s.bumpGeneration()
}

// bumpGeneration records that members have joined or left.
func (s *store) bumpGeneration() {
	s.generation++
	known := 0
	for _, m := range s.members {
		if m.FencedAt == 0 && (known == 0 || m.Format < known) {
			known = m.Format
		}
	}
	s.format = max(s.format, known)
}

func (s *store) Cluster(ctx context.Context) (*persistence.Cluster, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	c := &persistence.Cluster{Generation: s.generation, Now: s.nowMillis(), Owners: slices.Clone(s.owners[:])}
	for _, m := range s.members {
		if m.FencedAt == 0 || m.FencedAt > c.Now-persistence.Remembered.Milliseconds() {
			c.Members = append(c.Members, *m)
		}
	}
	return c, nil
}

func (s *store) Claim(ctx context.Context, incarnation string, shards []int) ([]int, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if s.findMember(incarnation) == nil {
		return nil, persistence.ErrFenced
	}
	var owned []int
	s.recordClaim(shards, incarnation)
	if s.transferShards(shards, "", incarnation) {
		s.generation++
	}
	for _, shard := range shards {
		if s.owners[shard] == incarnation {
			owned = append(owned, shard)
		}
	}
	slices.Sort(owned)
	return owned, nil
}

func (s *store) Release(ctx context.Context, incarnation string, transfers []persistence.Transfer) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if s.findMember(incarnation) == nil {
		return nil
	}
	counts := map[string]int{}
	for _, t := range transfers {
		to := t.To
		if s.findMember(to) == nil {
			to = ""
		}
		if s.transferShards([]int{t.Shard}, incarnation, to) {
			counts[to]++
		}
	}
	if len(counts) > 0 {
		s.generation++
	}
	delete(counts, "")
	delete(counts, incarnation)
	s.recordMoves(counts, func(taker string, n int) persistence.Move {
		return persistence.Move{From: incarnation, To: taker, Shards: n}
	})
	return nil
}

// transferShards moves shards from one owner to another, and reports whether any shard was moved.
func (s *store) transferShards(shards []int, from, to string) (some bool) {
	for _, shard := range shards {
		if s.owners[shard] == from {
			s.owners[shard], some = to, true
			s.previousOwners[shard] = cmp.Or(from, s.previousOwners[shard])
		}
	}
	return some
}

// recordClaim records the moves of a member's claim.
func (s *store) recordClaim(shards []int, taker string) {
	counts := map[string]int{}
	for _, shard := range shards {
		if s.owners[shard] == "" && s.previousOwners[shard] != taker {
			counts[s.previousOwners[shard]]++
		}
	}
	s.recordMoves(counts, func(giver string, n int) persistence.Move { return persistence.Move{From: giver, To: taker, Shards: n} })
}

// recordMoves records moves to or from several members.
func (s *store) recordMoves(counts map[string]int, move func(other string, n int) persistence.Move) {
	for _, other := range slices.Sorted(maps.Keys(counts)) {
		m := move(other, counts[other])
		m.At = s.nowMillis()
		s.moves = append(s.moves, m)
	}
	s.moves = s.recentMoves()
}

// recentMoves returns the moves that Moves still reports.
func (s *store) recentMoves() []persistence.Move {
	told := slices.DeleteFunc(slices.Clone(s.moves),
		func(m persistence.Move) bool { return m.At <= s.nowMillis()-persistence.Remembered.Milliseconds() })
	return told[max(0, len(told)-persistence.MostMoves):]
}

func (s *store) Moves(ctx context.Context) ([]persistence.Move, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.recentMoves(), nil
}

// Secret is easy to guess, because only one process uses a model.
func (s *store) Secret(ctx context.Context) (string, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	return "the secret of every model", nil
}

func (s *store) ValuesAt(ctx context.Context) (string, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	return s.values, nil
}

// Locked returns false, because members of one model may simulate different machines.
func (s *store) Locked() bool { return false }

func (s *store) nowMillis() int64 { return s.options.Now().UnixMilli() }

// findMember returns a member that may write, or nil.
func (s *store) findMember(incarnation string) *persistence.MemberRow {
	for _, m := range s.members {
		if m.Incarnation == incarnation && m.FencedAt == 0 {
			return m
		}
	}
	return nil
}
