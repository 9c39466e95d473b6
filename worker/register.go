package worker

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// registerPause is the longest pause between two attempts to register.
const registerPause = 2 * time.Second

// keepRegistered registers the worker and sends heartbeats until ctx ends, or the engine denies the
// worker. If the engine does not know the worker any longer, the worker registers again.
func (w *Worker) keepRegistered(ctx context.Context, me wire.WorkerRegistration) error {
	err := w.putRegistration(ctx, me)
	for failing := false; err == nil && sleepContext(ctx, w.cfg.Heartbeat); {
		answer, lost := w.sendHeartbeat(ctx, nil, max(w.cfg.Heartbeat, minHeartbeatTimeout))
		if lost != nil && !failing && ctx.Err() == nil {
			w.cfg.Logger.Warn("sending a heartbeat failed, retrying", "error", lost)
		}
		failing = lost != nil
		if err = w.server.deniedError(lost); lost == nil && !answer.Registered {
			err = w.putRegistration(ctx, me)
		}
	}
	return err
}

// partingTime is the maximum time that an ending worker tries to deregister.
const partingTime = 2 * time.Second

// deregister removes an ending worker from the engine, which then sends no more jobs to it.
func (w *Worker) deregister() {
	err := w.server.callEngine(context.Background(), http.MethodDelete, w.workerPath(""), nil, nil, partingTime)
	if err != nil && statusOf(err) != http.StatusNotFound {
		w.cfg.Logger.Warn("deregistering this worker failed; the server notices by missing heartbeats", "error", err)
	}
}

// minHeartbeatTimeout is the minimum timeout of a heartbeat. A heartbeat has to arrive before the
// worker counts as lost, which is after three missing ones.
const minHeartbeatTimeout = time.Second

// sendHeartbeat sends a heartbeat, and renews claims.
func (w *Worker) sendHeartbeat(ctx context.Context, claims []wire.HeldJob, limit time.Duration) (answer wire.HeartbeatResult, err error) {
	err = w.server.postJSON(ctx, w.workerPath("/heartbeat"),
		wire.Heartbeat{Load: int(w.load.Load()), Claims: claims}, &answer, min(limit, requestTime))
	return answer, err
}

// workerPath returns the path of a route of this worker.
func (w *Worker) workerPath(route string) string {
	return "/workers/" + url.PathEscape(w.cfg.ID) + route
}

// putRegistration registers the worker and retries until the engine answers. It returns an error if
// the engine denies the worker, or if ctx ends first.
func (w *Worker) putRegistration(ctx context.Context, me wire.WorkerRegistration) error {
	for failing := false; ; failing = true {
		err := w.server.callEngine(ctx, http.MethodPut, w.workerPath(""), me, &wire.RegistrationResult{}, requestTime)
		if err == nil {
			w.cfg.Logger.Info("registered", "worker", w.cfg.ID, "url", me.URL, "services", me.Services, "labels", me.Labels)
			return nil
		}
		if denied := w.server.deniedError(err); denied != nil {
			return denied
		}
		if !failing && ctx.Err() == nil {
			w.cfg.Logger.Warn("registering failed, retrying", "error", err)
		}
		if !sleepContext(ctx, min(registerPause, w.cfg.Heartbeat)) {
			return ctx.Err()
		}
	}
}
