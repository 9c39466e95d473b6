package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// leasePollInterval is how often a member checks whether another member has renewed the lease that
// it waits for.
const leasePollInterval = 100 * time.Millisecond

// soleMember makes a member the only one on its store.
type soleMember struct {
	lease *Lease
	store SoleStore
}

// SoleStore is the part of the store that a sole member needs.
type SoleStore interface {
	Cluster(ctx context.Context) (*persistence.Cluster, error)
	Fence(ctx context.Context, incarnation string) (ended bool, err error)
	Claim(ctx context.Context, incarnation string, shards []int) ([]int, error)
	Leave(ctx context.Context, incarnation string) error
}

// BecomeSoleMember makes the member the only one on a store that others could join. It waits until
// the leases of earlier members have expired, then fences those members. If another member renews
// its lease meanwhile, the error wraps persistence.ErrTaken and names that member.
func (l *Lease) BecomeSoleMember(ctx context.Context, store SoleStore) error {
	m := &soleMember{l, store}
	err := m.fenceAndClaimAll(ctx)
	if errors.Is(err, persistence.ErrTaken) {
		return errors.Join(err, m.store.Leave(ctx, m.lease.incarnation))
	}
	return err
}

func (m *soleMember) fenceAndClaimAll(ctx context.Context) error {
	seen := map[string]int64{} // first known expiry of the leases of other members
	for {
		waits, err := m.fenceOthers(ctx, seen)
		if err != nil {
			return err
		}
		if !waits {
			return m.claimAll(ctx)
		}
		if err := m.lease.Renew(ctx); err != nil {
			return fmt.Errorf("keeping the lease: %w", err)
		}
		if !m.lease.work.Sleep(leasePollInterval) || ctx.Err() != nil {
			return fmt.Errorf("waiting for another member's lease: %w", context.Cause(ctx))
		}
	}
}

// fenceOthers fences earlier members with expired leases. waits reports whether another lease still
// runs. Members that joined later wait for this one.
func (m *soleMember) fenceOthers(ctx context.Context, seen map[string]int64) (waits bool, err error) {
	c, err := m.store.Cluster(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the cluster: %w", err)
	}
	for _, other := range c.Members {
		if other.Incarnation == m.lease.incarnation {
			return waits, nil
		}
		if other.FencedAt != 0 {
			continue
		}
		first, ok := seen[other.Incarnation]
		seen[other.Incarnation] = other.Until
		if ok && first != other.Until {
			return false, fmt.Errorf("member %s (%s): %w", other.Name, other.Incarnation, persistence.ErrTaken)
		}
		ended, err := m.store.Fence(ctx, other.Incarnation)
		if err != nil {
			return false, fmt.Errorf("fencing another member: %w", err)
		}
		waits = waits || !ended
	}
	return waits, nil
}

func (m *soleMember) claimAll(ctx context.Context) error {
	owned, err := m.store.Claim(ctx, m.lease.incarnation, persistence.AllShards())
	if err == nil && len(owned) < persistence.Shards {
		err = persistence.ErrTaken
	}
	if err != nil {
		return fmt.Errorf("claiming the shards: %w", err)
	}
	return nil
}
