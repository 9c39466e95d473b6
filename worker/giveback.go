package worker

import (
	"context"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/api/wire"
)

// cancelWaiting cancels the jobs that have not begun and returns them.
func (k *claimKeeper) cancelWaiting() (dropped []*claimedJob) {
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

func (k *claimKeeper) heldJobs() []*claimedJob {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.held))
}

// endedJobs returns those of the given jobs whose handlers have returned.
func (k *claimKeeper) endedJobs(list []*claimedJob) []*claimedJob {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(list, func(c *claimedJob) bool { return k.held[c.ID] == c })
}

// declineJobs returns jobs to the engine that arrived after the worker stopped accepting jobs.
func (k *claimKeeper) declineJobs(jobs []pulledJob) {
	list := make([]*claimedJob, len(jobs))
	for i, q := range jobs {
		list[i] = &claimedJob{pulledJob: q}
	}
	k.giveBack(list)
}

// giveBack returns jobs to the engine, so that other workers get them at once. If this fails, other
// workers get the jobs when the claims have expired.
func (k *claimKeeper) giveBack(list []*claimedJob) {
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	for group := range slices.Chunk(list, claimGroup) {
		err := k.worker.server.postJSON(ctx, k.worker.workerPath("/release"),
			wire.ReleaseClaims{Claims: toHeldClaims(group, "")}, nil, partingTime)
		if err != nil {
			k.worker.cfg.Logger.Warn("returning jobs failed; they go to other workers when their claims expire", "jobs", len(group), "error", err)
		}
	}
}
