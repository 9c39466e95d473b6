package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// Ownership compares a store for several members with the model, over random histories of members
// that join, fall silent, leave, are fenced, and claim and release shards.
func Ownership(test *testing.T, s persistence.Store) {
	rapid.Check(test, func(t *rapid.T) {
		o := &ownershipHistory{T: t, store: s, model: model.New(model.Options{}), names: map[string]string{"": ""}}
		o.before = o.readGeneration()
		o.joinBoth(t)
		defer o.leaveAll()
		t.Repeat(map[string]func(*rapid.T){
			"join":    o.joinBoth,
			"renew":   o.renewBoth,
			"leave":   o.leaveBoth,
			"fence":   o.fenceBoth,
			"claim":   o.claimBoth,
			"release": o.releaseBoth,
		})
		o.compareClusters(t)
	})
}

type ownershipHistory struct {
	*rapid.T
	store, model persistence.Store
	members      []incarnationPair // including incarnations that have left
	names        map[string]string // by incarnations of the store, the incarnations of the model
	before       int64             // generation of the store at the start
}

func (o *ownershipHistory) readGeneration() int64 {
	c, err := o.store.Cluster(ctx)
	require.NoError(o, err)
	return c.Generation
}

func (o *ownershipHistory) drawMember(t *rapid.T) incarnationPair {
	return rapid.SampledFrom(o.members).Draw(t, "member")
}

func (o *ownershipHistory) drawShards(t *rapid.T) []int {
	return rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 5, rapid.ID[int]).Draw(t, "shards")
}

// drawLease returns a lease that has expired at once, or lasts for the whole history.
func (o *ownershipHistory) drawLease(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "lease")
}

func (o *ownershipHistory) joinBoth(t *rapid.T) {
	j := persistence.Joining{Name: "m", URL: "u", Gossip: "g", TTL: o.drawLease(t)}
	var next incarnationPair
	var err error
	next.store, err = o.store.Join(ctx, j)
	require.NoError(t, err)
	next.model, err = o.model.Join(ctx, j)
	require.NoError(t, err)
	o.members = append(o.members, next)
	o.names[next.store] = next.model
}

func (o *ownershipHistory) renewBoth(t *rapid.T) {
	one, ttl := o.drawMember(t), o.drawLease(t)
	_, got := o.store.Renew(ctx, one.store, ttl)
	_, want := o.model.Renew(ctx, one.model, ttl)
	require.ErrorIs(t, got, want)
}

func (o *ownershipHistory) leaveBoth(t *rapid.T) {
	one := o.drawMember(t)
	require.NoError(t, o.store.Leave(ctx, one.store))
	require.NoError(t, o.model.Leave(ctx, one.model))
}

func (o *ownershipHistory) fenceBoth(t *rapid.T) {
	one := o.drawMember(t)
	got, err := o.store.Fence(ctx, one.store)
	require.NoError(t, err)
	want, err := o.model.Fence(ctx, one.model)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (o *ownershipHistory) claimBoth(t *rapid.T) {
	one, shards := o.drawMember(t), o.drawShards(t)
	got, err := o.store.Claim(ctx, one.store, shards)
	want, wantErr := o.model.Claim(ctx, one.model, shards)
	require.ErrorIs(t, err, wantErr)
	require.ElementsMatch(t, want, got)
}

func (o *ownershipHistory) releaseBoth(t *rapid.T) {
	one, next, shards := o.drawMember(t), o.drawMember(t), o.drawShards(t)
	require.NoError(t, o.store.Release(ctx, one.store, transfersTo(next.store, shards...)))
	require.NoError(t, o.model.Release(ctx, one.model, transfersTo(next.model, shards...)))
}

// compareClusters compares the two results of Cluster. The store may have had members before.
func (o *ownershipHistory) compareClusters(t *rapid.T) {
	got, err := o.store.Cluster(ctx)
	require.NoError(t, err)
	want, err := o.model.Cluster(ctx)
	require.NoError(t, err)
	require.Equal(t, want.Generation, got.Generation-o.before)
	for shard, owner := range got.Owners {
		require.Equal(t, want.Owners[shard], o.names[owner], "shard %d", shard)
	}
	got.Members = got.Members[len(got.Members)-len(want.Members):]
	for i, m := range got.Members {
		require.Equal(t, want.Members[i].Incarnation, o.names[m.Incarnation])
		require.Equal(t, want.Members[i].FencedAt > 0, m.FencedAt > 0)
		require.Equal(t, want.Members[i].Until > want.Now, m.Until > got.Now)
	}
}

func (o *ownershipHistory) leaveAll() {
	for _, one := range o.members {
		require.NoError(o, o.store.Leave(ctx, one.store))
	}
}
