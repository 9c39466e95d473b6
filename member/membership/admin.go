package membership

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Admin answers the requests of operators about the cluster. Everything comes from the store, so
// every member gives the same answers.
type Admin struct {
	name   string // name of the cluster
	me     string // incarnation of the member that answers
	store  persistence.Store
	keeper *cluster.Keeper // nil if the store has room for one member only
}

// NewAdmin returns the Admin of the cluster with the given name. incarnation is that of the
// answering member. c may be nil.
func NewAdmin(name, incarnation string, store persistence.Store, c *Membership) *Admin {
	a := &Admin{name: name, me: incarnation, store: store}
	if c != nil {
		a.keeper = c.keeper
	}
	return a
}

// readCluster returns the current state of the cluster, and the number of tasks per shard.
func (c *Admin) readCluster(ctx context.Context) (*cluster.View, map[int]persistence.ShardTasks, error) {
	v, err := c.readView(ctx)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := c.store.CountByShard(ctx)
	return v, tasks, err
}

func (c *Admin) readView(ctx context.Context) (*cluster.View, error) {
	told, err := c.store.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return cluster.NewView(told), nil
}

// Members implements cluster.Cluster.
func (c *Admin) Members(ctx context.Context) (*wire.Cluster, error) {
	v, tasks, err := c.readCluster(ctx)
	if err != nil {
		return nil, err
	}
	s := cluster.Summarize(v)
	answer := &wire.Cluster{Name: c.name, StoreTime: wire.Time{Time: s.Now}, Unowned: s.Unowned, Items: make([]wire.Member, len(s.Members))}
	owned := map[string]persistence.ShardTasks{}
	for shard, n := range tasks {
		all := owned[v.Owner(shard)]
		owned[v.Owner(shard)] = persistence.ShardTasks{Active: all.Active + n.Active, Resting: all.Resting + n.Resting}
	}
	for i, m := range s.Members {
		answer.Items[i] = c.toMember(m)
		answer.Items[i].ActiveTasks, answer.Items[i].IdleTasks = owned[m.Incarnation].Active, owned[m.Incarnation].Resting
	}
	return answer, nil
}

// CountMembers implements cluster.Cluster.
func (c *Admin) CountMembers(ctx context.Context) (*wire.MemberCounts, error) {
	v, err := c.readView(ctx)
	if err != nil {
		return nil, err
	}
	s := cluster.Summarize(v)
	count := &wire.MemberCounts{Unowned: s.Unowned}
	for _, m := range s.Members {
		switch m.State {
		case cluster.Alive:
			count.Alive++
		case cluster.Draining:
			count.Draining++
		case cluster.Overdue:
			count.Overdue++
		}
	}
	return count, nil
}

func (c *Admin) toMember(m cluster.MemberSummary) wire.Member {
	return wire.Member{
		Name: m.Name, Incarnation: m.Incarnation, State: string(m.State), Current: m.Incarnation == c.me, Version: m.Version,
		URL: m.URL, Gossip: m.Gossip, JoinedAt: wire.Millis(m.JoinedAt), EndedAt: wire.Millis(m.FencedAt),
		LeaseMS: m.Lease.Milliseconds(), Shards: m.Shards,
	}
}

// Shards implements cluster.Cluster.
func (c *Admin) Shards(ctx context.Context, task string) (*wire.Shards, error) {
	v, tasks, err := c.readCluster(ctx)
	if err != nil {
		return nil, err
	}
	shards := persistence.AllShards()
	if task != "" {
		shards = []int{persistence.ShardOf(task)}
	}
	answer := &wire.Shards{StoreTime: wire.Time{Time: v.Now}, Items: make([]wire.Shard, len(shards))}
	for i, shard := range shards {
		owner, _ := v.Member(v.Owner(shard))
		answer.Items[i] = wire.Shard{Shard: shard, Owner: owner.Incarnation, Member: owner.Name,
			ActiveTasks: tasks[shard].Active, IdleTasks: tasks[shard].Resting}
	}
	portions, err := c.store.Moves(ctx)
	if err != nil {
		return nil, err
	}
	answer.Moves = toMoves(v, cluster.Moves(portions))
	return answer, nil
}

func toMoves(v *cluster.View, all []cluster.Move) []wire.ShardMove {
	named := func(incarnation string) wire.MemberName {
		m, _ := v.Member(incarnation)
		return wire.MemberName{Incarnation: incarnation, Name: m.Name}
	}
	told := make([]wire.ShardMove, len(all))
	for i, m := range all {
		told[i] = wire.ShardMove{At: wire.Time{Time: m.At}, Shards: m.Shards, To: named(m.To)}
		if m.From != "" {
			from := named(m.From)
			told[i].From = &from
		}
	}
	return told
}

// Drain implements cluster.Cluster. It only writes to the store, because the member reads the
// change from there.
func (c *Admin) Drain(ctx context.Context, member string, drains bool) (*wire.Member, error) {
	v, err := c.readView(ctx)
	if err != nil {
		return nil, err
	}
	m, err := findMember(v, member)
	if err != nil {
		return nil, err
	}
	if drains && !m.Draining && !c.hasTakers(v, m) {
		return nil, flow.Errorf(flow.Conflict, "no other member could take the shards of %s: %s", m.Name, c.aloneReason())
	}
	if err := c.store.Drain(ctx, m.Incarnation, drains); errors.Is(err, persistence.ErrFenced) {
		return nil, flow.Errorf(flow.NotFound, "member %q has just gone", member)
	} else if err != nil {
		return nil, err
	}
	if c.keeper != nil {
		// a drained member on another host does the same after its next lease renewal
		c.keeper.Look()
	}
	if v, err = c.readView(ctx); err != nil {
		return nil, err
	}
	all := cluster.Summarize(v).Members
	i := slices.IndexFunc(all, func(s cluster.MemberSummary) bool { return s.Incarnation == m.Incarnation })
	answer := c.toMember(all[i])
	return &answer, nil
}

// findMember returns the living member with this name or incarnation.
func findMember(v *cluster.View, member string) (persistence.MemberRow, error) {
	var found []persistence.MemberRow
	for _, m := range v.Living() {
		if m.Incarnation == member {
			return m, nil
		}
		if m.Name == member {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return persistence.MemberRow{}, flow.Errorf(flow.NotFound, "no member %q lives", member)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, m := range found {
		names[i] = m.Incarnation
	}
	return persistence.MemberRow{}, flow.Errorf(flow.Conflict,
		"several members are called %s: name one by its incarnation: %s", member, strings.Join(names, ", "))
}

// hasTakers reports whether another member can take over the shards of m.
func (c *Admin) hasTakers(v *cluster.View, m persistence.MemberRow) bool {
	return slices.ContainsFunc(v.Living(), func(other persistence.MemberRow) bool {
		return other.Incarnation != m.Incarnation && !other.Draining && time.UnixMilli(other.Until).After(v.Now)
	})
}

func (c *Admin) aloneReason() string {
	if c.store.Locked() {
		return "a store of SQLite has room for one member; several share a store of PostgreSQL"
	}
	return "all other members drain or are gone; start a member, or end a drain"
}
