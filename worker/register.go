package worker

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// registerPause is the most there is between two tries to register.
const registerPause = 2 * time.Second

// keepRegistered registers the worker and gives signs of life until ctx ends, or the engine denies
// it. An engine that does not know the worker (any longer) is told again.
func (w *Worker) keepRegistered(ctx context.Context, me wire.Registration) error {
	err := w.putRegistration(ctx, me)
	for failing := false; err == nil && sleepContext(ctx, w.cfg.Heartbeat); {
		answer, lost := w.sendHeartbeat(ctx, nil, max(w.cfg.Heartbeat, minHeartbeatTimeout))
		if lost != nil && !failing && ctx.Err() == nil {
			w.cfg.Logger.Warn("the engine does not hear from this worker; trying on", "error", lost)
		}
		failing = lost != nil
		if err = w.server.deniedError(lost); lost == nil && !answer.Registered {
			err = w.putRegistration(ctx, me)
		}
	}
	return err
}

// partingTime bounds how long a worker that ends tries to say so.
const partingTime = 2 * time.Second

// deregister keeps the engine from sending jobs to a worker that ends, and from showing it.
func (w *Worker) deregister() {
	err := w.server.callEngine(context.Background(), http.MethodDelete, w.workerPath(""), nil, nil, partingTime)
	if err != nil && statusOf(err) != http.StatusNotFound {
		w.cfg.Logger.Warn("the engine was not told that this worker ends; it will notice by its silence", "error", err)
	}
}

// minHeartbeatTimeout is what a sign of life may take at least: it is to come before the worker
// counts as gone, which three missing ones make it.
const minHeartbeatTimeout = time.Second

// sendHeartbeat gives a sign of life, and prolongs claims.
func (w *Worker) sendHeartbeat(ctx context.Context, claims []wire.HeldClaim, limit time.Duration) (answer wire.HeartbeatAnswer, err error) {
	err = w.server.postJSON(ctx, w.workerPath("/heartbeat"), wire.Heartbeat{Load: int(w.load.Load()), Claims: claims}, &answer, min(limit, requestTime))
	return answer, err
}

// workerPath of a route about this worker.
func (w *Worker) workerPath(route string) string {
	return "/workers/" + url.PathEscape(w.cfg.ID) + route
}

// putRegistration tries until the engine has taken the registration, or denies the worker. Its
// error says that, or that ctx ended first.
func (w *Worker) putRegistration(ctx context.Context, me wire.Registration) error {
	for failing := false; ; failing = true {
		err := w.server.callEngine(ctx, http.MethodPut, w.workerPath(""), me, &wire.Registered{}, requestTime)
		if err == nil {
			w.cfg.Logger.Info("registered", "worker", w.cfg.ID, "url", me.URL, "services", me.Services, "labels", me.Labels)
			return nil
		}
		if denied := w.server.deniedError(err); denied != nil {
			return denied
		}
		if !failing && ctx.Err() == nil {
			w.cfg.Logger.Warn("the worker is not registered yet; trying on", "error", err)
		}
		if !sleepContext(ctx, min(registerPause, w.cfg.Heartbeat)) {
			return ctx.Err()
		}
	}
}
