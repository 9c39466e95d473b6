package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/model"
)

// Ownership compares a store on which several members can live with the model, over random histories of members that
// join, fall silent, leave, are fenced, and claim and release shards.
func Ownership(test *testing.T, s persistence.Store) {
	rapid.Check(test, func(t *rapid.T) {
		o := &ownership{T: t, store: s, model: model.New(model.Options{}), names: map[string]string{"": ""}}
		o.before = o.generation()
		o.join(t)
		defer o.clear()
		t.Repeat(map[string]func(*rapid.T){
			"join":    o.join,
			"renew":   o.renew,
			"leave":   o.leave,
			"fence":   o.fence,
			"claim":   o.claim,
			"release": o.release,
		})
		o.same(t)
	})
}

type ownership struct {
	*rapid.T
	store, model persistence.Store
	members      []pair            // also those that have gone
	names        map[string]string // incarnations of the model by those of the store
	before       int64             // generation of the store at the beginning
}

func (o *ownership) generation() int64 {
	c, err := o.store.Cluster(ctx)
	require.NoError(o, err)
	return c.Generation
}

func (o *ownership) one(t *rapid.T) pair { return rapid.SampledFrom(o.members).Draw(t, "member") }

func (o *ownership) shards(t *rapid.T) []int {
	return rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 5, rapid.ID[int]).Draw(t, "shards")
}

// lease has run out at once, or lasts for the whole history.
func (o *ownership) lease(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "lease")
}

func (o *ownership) join(t *rapid.T) {
	j := persistence.Joining{Name: "m", URL: "u", Gossip: "g", TTL: o.lease(t)}
	var next pair
	var err error
	next.store, err = o.store.Join(ctx, j)
	require.NoError(t, err)
	next.model, err = o.model.Join(ctx, j)
	require.NoError(t, err)
	o.members = append(o.members, next)
	o.names[next.store] = next.model
}

func (o *ownership) renew(t *rapid.T) {
	one, ttl := o.one(t), o.lease(t)
	_, got := o.store.Renew(ctx, one.store, ttl)
	_, want := o.model.Renew(ctx, one.model, ttl)
	require.ErrorIs(t, got, want)
}

func (o *ownership) leave(t *rapid.T) {
	one := o.one(t)
	require.NoError(t, o.store.Leave(ctx, one.store))
	require.NoError(t, o.model.Leave(ctx, one.model))
}

func (o *ownership) fence(t *rapid.T) {
	one := o.one(t)
	got, err := o.store.Fence(ctx, one.store)
	require.NoError(t, err)
	want, err := o.model.Fence(ctx, one.model)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (o *ownership) claim(t *rapid.T) {
	one, shards := o.one(t), o.shards(t)
	got, err := o.store.Claim(ctx, one.store, shards)
	want, wantErr := o.model.Claim(ctx, one.model, shards)
	require.ErrorIs(t, err, wantErr)
	require.ElementsMatch(t, want, got)
}

func (o *ownership) release(t *rapid.T) {
	one, next, shards := o.one(t), o.one(t), o.shards(t)
	require.NoError(t, o.store.Release(ctx, one.store, to(next.store, shards...)))
	require.NoError(t, o.model.Release(ctx, one.model, to(next.model, shards...)))
}

// same compares what the two tell of the cluster. The store may have had members before.
func (o *ownership) same(t *rapid.T) {
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

func (o *ownership) clear() {
	for _, one := range o.members {
		require.NoError(o, o.store.Leave(ctx, one.store))
	}
}
