package worker

import (
	"context"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/api/wire"
)

// dropWaiting gives up the jobs that have not begun.
func (k *claims) dropWaiting() (dropped []*claim) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.held {
		if !c.begun && c.ctx.Err() == nil {
			c.cancel(errLeaving)
			dropped = append(dropped, c)
		}
	}
	return dropped
}

func (k *claims) all() []*claim {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.held))
}

// ended are those of a list whose handlers have come back.
func (k *claims) ended(list []*claim) []*claim {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(list, func(c *claim) bool { return k.held[c.ID] == c })
}

// decline gives back jobs that came when the worker takes no more.
func (k *claims) decline(jobs []pulled) {
	list := make([]*claim, len(jobs))
	for i, q := range jobs {
		list[i] = &claim{pulled: q}
	}
	k.giveBack(list)
}

// giveBack lets others have jobs at once. If that fails they get them when the claims have run out.
func (k *claims) giveBack(list []*claim) {
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	for group := range slices.Chunk(list, claimGroup) {
		err := k.worker.server.post(ctx, k.worker.path("/release"), wire.GiveBack{Claims: held(group, "")}, nil, partingTime)
		if err != nil {
			k.worker.cfg.Logger.Warn("jobs could not be given back; others get them when the claims run out", "jobs", len(group), "error", err)
		}
	}
}
