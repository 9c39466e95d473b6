package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/internal/host"
)

// These constants bound handovers. The tasks of all shards in a handover wait for the slowest one
// and for the next owners. So the number of shards begins small, doubles after quick handovers, and
// is halved after slow ones.
const (
	leastPortion, mostPortion = 16, 128

	quickRest = 50 * time.Millisecond
	slowRest  = 200 * time.Millisecond
)

// nextPortion returns the number of shards for the next handover, based on the duration of the last
// one.
func nextPortion(portion int, took time.Duration) int {
	switch {
	case took < quickRest:
		return min(2*portion, mostPortion)
	case took > slowRest:
		return max(portion/2, leastPortion)
	}
	return portion
}

// shardHandover is a handover in progress.
type shardHandover struct {
	shards []int
	began  time.Time
	done   chan struct{} // closed when the handover has ended
	err    error         // set before done is closed
}

// finishHandover records the result of a handover. A failed one is retried.
func (k *Keeper) finishHandover(h *shardHandover) {
	if h.err != nil {
		k.cfg.Log.Warn("handing over shards failed, retrying", "shards", len(h.shards), "error", h.err)
		k.handoverFailedAt = k.cfg.Host.Now()
		k.metrics.refused.Inc()
		k.metrics.handing.Set(0)
		for _, shard := range h.shards {
			// if the next view shows them as owned, the member gains them again
			delete(k.held, shard)
		}
	} else {
		k.handedOver, k.began = h.shards, h.began
		k.portion = nextPortion(k.portion, k.cfg.Host.Now().Sub(h.began))
	}
	k.handing = nil
}

// releaseShards releases handed-over shards to their new owners and announces it at once, because
// tasks wait for a new owner.
func (k *Keeper) releaseShards(ctx context.Context) error {
	if len(k.handedOver) == 0 {
		return nil
	}
	ctx, cancel := k.cfg.Host.Within(ctx, k.cfg.TTL)
	defer cancel()
	if err := k.cfg.Store.Release(ctx, k.me, planTransfers(k.Current(), k.me, k.handedOver)); err != nil {
		return fmt.Errorf("release %d shards: %w", len(k.handedOver), err)
	}
	k.cfg.Announce()
	k.cfg.Log.Info("shards handed over", "shards", len(k.handedOver))
	k.metrics.handover.Observe(k.cfg.Host.Now().Sub(k.began).Seconds())
	k.metrics.handing.Set(0)
	for _, shard := range k.handedOver {
		delete(k.held, shard)
	}
	k.handedOver = nil
	return nil
}

// foreignShards returns shards that the member holds although the store has another owner. This
// should never happen; the store is right.
func (k *Keeper) foreignShards(v *View) []int {
	var shards []int
	for shard := range k.held {
		if v.Owner(shard) != k.me {
			shards = append(shards, shard)
		}
	}
	slices.Sort(shards)
	return shards
}

// startHandover begins to hand over some of the shards, unless a handover is in progress or has
// just failed.
func (k *Keeper) startHandover(ctx context.Context, shards []int) {
	if len(shards) == 0 || k.handing != nil || len(k.handedOver) > 0 || k.cfg.Host.Now().Sub(k.handoverFailedAt) < unsettledInterval {
		return
	}
	h := &shardHandover{shards: slices.Clone(shards[:min(k.portion, len(shards))]), began: k.cfg.Host.Now(), done: make(chan struct{})}
	k.handing = h
	k.metrics.handing.Set(float64(len(h.shards)))
	k.work.Run(func() {
		h.err = k.cfg.Local.Lose(ctx, slices.Clone(h.shards))
		close(h.done)
	})
}

// Leave hands over all shards that other members can take. Run continues, so the member stays alive
// and follows the cluster until it gives up its lease.
func (k *Keeper) Leave(ctx context.Context) error {
	k.leaving.Store(true)
	for {
		err := k.markDraining(ctx)
		v := k.Current()
		if err == nil && k.isDrained(v) {
			return nil
		}
		k.awaitView(ctx, v, err != nil)
		switch { // the result must not depend on the random choice of select
		case host.Closed(k.ended):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("cluster: leave: %d shards were not handed over: %w", len(v.Shards(k.me)), errors.Join(ctx.Err(), err))
		}
	}
}

// awaitView waits for a view that differs from v. After a failure of the store, it waits only
// briefly.
func (k *Keeper) awaitView(ctx context.Context, v *View, failed bool) {
	var moment <-chan struct{}
	if failed {
		up, stop := k.cfg.Host.Timer(unsettledInterval)
		defer stop()
		moment = up
	}
	changed := k.Changed(v.Generation)
	k.cfg.Host.Wait(func() bool {
		return host.Closed(changed) || host.Closed(moment) || host.Closed(k.ended) || ctx.Err() != nil
	})
	select {
	case <-changed:
	case <-moment:
	case <-k.ended:
	case <-ctx.Done():
	}
}

// markDraining marks the member as draining in the store, also if the mark was undone.
func (k *Keeper) markDraining(ctx context.Context) error {
	if me, _ := k.Current().Member(k.me); me.Draining {
		return nil
	}
	ctx, cancel := k.cfg.Host.Within(ctx, k.cfg.TTL)
	defer cancel()
	if err := k.cfg.Store.Drain(ctx, k.me, true); err != nil {
		return fmt.Errorf("say that the member drains: %w", err)
	}
	k.cfg.Announce()
	sendToken(k.wake)
	return nil
}

// OwnsNothing reports whether the member owned no shard at the last read of the store.
func (k *Keeper) OwnsNothing() bool { return len(k.Current().Shards(k.me)) == 0 }

// isDrained reports whether no further shards can be handed over.
func (k *Keeper) isDrained(v *View) bool {
	me, _ := v.Member(k.me)
	if !me.Draining || len(v.Shards(k.me)) == 0 {
		return me.Draining
	}
	p := newPlacement(v)
	return p.allDraining || p.freeCapacity(k.me) == 0
}
