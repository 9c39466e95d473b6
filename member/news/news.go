// Package news announces changes to the other members of the cluster, and applies the changes that
// others announce.
//
// A member announces a change of cached data before it answers the request that made the change. So
// the client sees the change at every member. Heartbeats are announced in the background.
package news

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// Announcer announces the changes that are made at this member. Before SetOthers it announces
// nothing.
type Announcer struct {
	Newest *persistence.NewestStore // the cache of flows
	Wake   func()                   // called when schedules have changed
	others atomic.Pointer[cluster.Others]
}

// WorkerWait is how long a worker's request waits for members that cannot be reached. If another
// request has just waited in vain, there is no wait. Such members learn of the change from the
// store.
const WorkerWait = time.Second

// AnnounceFlow announces that versions or schedules of a flow changed. If some members cannot be
// reached, it waits until their cached data has expired.
func (a *Announcer) AnnounceFlow(ctx context.Context, flow string) {
	a.Wake()
	others := a.others.Load()
	if others == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, persistence.NewestAge)
	defer cancel()
	if !others.Announce(ctx, engine.News{Flows: []string{flow}}) {
		<-ctx.Done()
	}
}

// AnnounceWorker announces a worker that registered, changed or left.
func (a *Announcer) AnnounceWorker(ctx context.Context, w persistence.Worker, gone bool) {
	others := a.others.Load()
	if others == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, WorkerWait)
	defer cancel()
	others.Inform(ctx, engine.News{Workers: []engine.Worker{{ID: w.ID, URL: w.URL, Type: w.Type,
		Secret: w.Secret, Services: w.Services, Labels: w.Labels,
		Load: w.Load, HeardAt: w.LastHeartbeat, RegisteredAt: w.RegisteredAt, JoinedAt: w.JoinedAt, Gone: gone}}})
}

// AnnounceHeartbeat announces a worker's heartbeat. again means that the worker counted as lost;
// only then it waits for the other members.
func (a *Announcer) AnnounceHeartbeat(ctx context.Context, b persistence.Heartbeat, again bool) {
	others := a.others.Load()
	if others == nil {
		return
	}
	news := engine.News{Beats: []engine.Beat{{ID: b.ID, Load: b.Load, HeardAt: b.At}}}
	if !again {
		others.Mention(news)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, WorkerWait)
	defer cancel()
	others.Inform(ctx, news)
}

// Apply applies the news of another member to the caches and to the given registry.
func (a *Announcer) Apply(registry *workers.Registry, news engine.News) {
	for _, flow := range news.Flows {
		a.Newest.Forget(flow)
	}
	if len(news.Flows) > 0 {
		a.Wake()
	}
	for _, w := range news.Workers {
		registry.Hear(persistence.Worker{ID: w.ID, URL: w.URL, Type: w.Type, Secret: w.Secret, Services: w.Services, Labels: w.Labels,
			Load: w.Load, LastHeartbeat: w.HeardAt, RegisteredAt: w.RegisteredAt, JoinedAt: w.JoinedAt}, w.Gone)
	}
	for _, b := range news.Beats {
		registry.HearBeat(persistence.Heartbeat{ID: b.ID, Load: b.Load, At: b.HeardAt})
	}
}

// SetOthers sets the members that receive news from then on.
func (a *Announcer) SetOthers(others cluster.Others) { a.others.Store(&others) }
