package troupe

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/actors/workers"
	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// A member announces a change of cached data to the others before it answers the request that made
// the change, so the client sees the change at every member. Heartbeats are announced in the
// background.

// workerNews is how long a worker's request waits for members that cannot be reached. There is no
// wait if another request has just waited for nothing. Such members learn of the change from the
// store.
const workerNews = time.Second

// flowChanged announces that a flow was published to or deleted, or that its schedules changed. If
// some members cannot be reached, it waits until their cached data has expired.
func (e *Engine) flowChanged(ctx context.Context, flow string) {
	e.wakeSchedules()
	others := e.others.Load()
	if others == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, persistence.NewestAge)
	defer cancel()
	if !others.Announce(ctx, engine.News{Flows: []string{flow}}) {
		<-ctx.Done()
	}
}

// workerChanged announces a worker that registered, changed or left.
func (e *Engine) workerChanged(ctx context.Context, w persistence.Worker, gone bool) {
	others := e.others.Load()
	if others == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, workerNews)
	defer cancel()
	others.Inform(ctx, engine.News{Workers: []engine.Worker{{ID: w.ID, URL: w.URL, Type: w.Type,
		Secret: w.Secret, Services: w.Services, Labels: w.Labels,
		Load: w.Load, HeardAt: w.LastHeartbeat, RegisteredAt: w.RegisteredAt, JoinedAt: w.JoinedAt, Gone: gone}}})
}

// workerLives announces a worker's heartbeat. It waits for the other members only if the worker was
// considered gone.
func (e *Engine) workerLives(ctx context.Context, b persistence.Heartbeat, again bool) {
	others := e.others.Load()
	if others == nil {
		return
	}
	news := engine.News{Beats: []engine.Beat{{ID: b.ID, Load: b.Load, HeardAt: b.At}}}
	if !again {
		others.Mention(news)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, workerNews)
	defer cancel()
	others.Inform(ctx, news)
}

// handleNews applies the news of another member, with the registry of the life that received it.
func (e *Engine) handleNews(registry *workers.Registry, news engine.News) {
	for _, flow := range news.Flows {
		e.newest.Forget(flow)
	}
	if len(news.Flows) > 0 {
		e.wakeSchedules()
	}
	for _, w := range news.Workers {
		registry.Hear(persistence.Worker{ID: w.ID, URL: w.URL, Type: w.Type, Secret: w.Secret, Services: w.Services, Labels: w.Labels,
			Load: w.Load, LastHeartbeat: w.HeardAt, RegisteredAt: w.RegisteredAt, JoinedAt: w.JoinedAt}, w.Gone)
	}
	for _, b := range news.Beats {
		registry.HearBeat(persistence.Heartbeat{ID: b.ID, Load: b.Load, At: b.HeardAt})
	}
}

// setOthers sets the members that receive news from now on.
func (e *Engine) setOthers(others cluster.Others) { e.others.Store(&others) }
