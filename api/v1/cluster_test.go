package v1_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// pair is a cluster of two members.
type pair struct{ draining bool }

var noon = wire.Time{Time: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}

func (p *pair) second() wire.Member {
	m := wire.Member{Name: "second", Incarnation: "J2", State: "alive", Version: "1.2.3",
		URL: "http://second:8070", Gossip: "second:8071", JoinedAt: noon, LeaseMS: 1900,
		Shards: 512, ActiveTasks: 3, IdleTasks: 4}
	if p.draining {
		m.State = "draining"
	}
	return m
}

func (p *pair) Members(context.Context) (*wire.Cluster, error) {
	gone := wire.Member{Name: "first", Incarnation: "J1", State: "gone", JoinedAt: noon, EndedAt: noon}
	return &wire.Cluster{Name: "north", StoreTime: noon, Unowned: 512, Items: []wire.Member{gone, p.second()}}, nil
}

func (p *pair) CountMembers(context.Context) (*wire.MemberCounts, error) {
	return &wire.MemberCounts{Alive: 1, Unowned: 512}, nil
}

func (p *pair) Shards(_ context.Context, task string) (*wire.Shards, error) {
	if task == "away" {
		return nil, persistence.ErrUnavailable
	}
	return &wire.Shards{StoreTime: noon, Items: []wire.Shard{{Shard: 7, Owner: "J2", Member: "second", ActiveTasks: 1}},
		Moves: []wire.ShardMove{{At: noon, Shards: 512, To: wire.MemberName{Incarnation: "J2", Name: "second"}}}}, nil
}

func (p *pair) Drain(_ context.Context, member string, drains bool) (*wire.Member, error) {
	switch {
	case member == "first":
		return nil, flow.Errorf(flow.NotFound, "it has gone")
	case member == "alone":
		return nil, flow.Errorf(flow.Conflict, "nobody could take what it owns")
	}
	p.draining = drains
	m := p.second()
	return &m, nil
}

func TestMembersAreListed(t *testing.T) {
	c := start(t).get("/v1/cluster/members")
	require.Equal(t, "north", c["name"])
	require.EqualValues(t, 512, c["unowned"])
	first, second := c["items"].([]any)[0].(obj), c["items"].([]any)[1].(obj)
	require.Equal(t, obj{"name": "first", "incarnation": "J1", "state": "gone",
		"joined_at": "2026-01-02T12:00:00.000Z", "ended_at": "2026-01-02T12:00:00.000Z",
		"lease_ms": 0., "shards": 0., "active_tasks": 0., "idle_tasks": 0.}, first)
	require.Equal(t, obj{"name": "second", "incarnation": "J2", "state": "alive",
		"version": "1.2.3", "url": "http://second:8070", "gossip": "second:8071",
		"joined_at": "2026-01-02T12:00:00.000Z", "lease_ms": 1900., "shards": 512., "active_tasks": 3., "idle_tasks": 4.}, second)
}

func TestShardsAndTheirMovesAreListed(t *testing.T) {
	s := start(t)
	shards := s.get("/v1/cluster/shards?task=x")
	require.Equal(t, []any{obj{"shard": 7., "owner": "J2", "member": "second", "active_tasks": 1., "idle_tasks": 0.}}, shards["items"])
	require.Equal(t, []any{obj{"at": "2026-01-02T12:00:00.000Z", "shards": 512.,
		"to": obj{"incarnation": "J2", "name": "second"}}}, shards["moves"])
	s.refused(503, "", "GET", "/v1/cluster/shards?task=away", nil)
}

func TestAMemberIsDrainedAndStays(t *testing.T) {
	s := start(t)
	require.Equal(t, "draining", s.call(200, "POST", "/v1/cluster/members/second/drain", nil)["state"])
	require.Equal(t, "alive", s.call(200, "DELETE", "/v1/cluster/members/second/drain", nil)["state"])
	gone := s.refused(404, "path.member", "POST", "/v1/cluster/members/first/drain", nil)
	require.Equal(t, `there is no live member "first" in this cluster`, gone["message"])
	s.refused(404, "path.member", "DELETE", "/v1/cluster/members/first/drain", nil)
	alone := s.refused(409, "path.member", "POST", "/v1/cluster/members/alone/drain", nil)
	require.Equal(t, "nobody could take what it owns", alone["message"])
	require.Contains(t, alone["hint"], "/v1/cluster/members")
}
