package troupe

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/actors/workers"
	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// What members remember is told to the others before whoever changed it is answered: so he finds it
// at any member. Signs of life are told beside.

// workerNews is how long a worker waits for members that cannot be reached, unless another one has
// just waited in vain. They learn of it from the store.
const workerNews = time.Second

// flowChanged has the other members know of a flow that was published to, or deleted, or whose
// schedules have changed. Those that cannot be told know when what they remember is too old, which
// is waited for.
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

// workerChanged has the other members know of a worker.
func (e *Engine) workerChanged(ctx context.Context, w persistence.Worker, gone bool) {
	others := e.others.Load()
	if others == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, workerNews)
	defer cancel()
	others.Inform(ctx, engine.News{Workers: []engine.Worker{{ID: w.ID, URL: w.URL, Type: w.Type, Secret: w.Secret, Services: w.Services, Labels: w.Labels,
		Load: w.Load, HeardAt: w.LastHeartbeat, RegisteredAt: w.RegisteredAt, JoinedAt: w.JoinedAt, Gone: gone}}})
}

// workerLives has the other members know of a worker's sign of life. It waits for them only if the
// worker was taken for gone.
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

// handleNews takes note of what another member tells, with the registry of the life that it was
// told to.
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

// setOthers has the others told from now on.
func (e *Engine) setOthers(others cluster.Others) { e.others.Store(&others) }
