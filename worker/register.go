package worker

import (
	"context"
	"net/http"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// registerPause is the most there is between two tries to register.
const registerPause = 2 * time.Second

// registration is what the engine is told about a worker.
type registration struct {
	id, url, kind string
	services      []string
	labels        []string
	secret        string
}

// announce registers the worker and gives signs of life until ctx ends. An engine that does not know
// the worker (any longer) is told again.
func (w *Worker) announce(ctx context.Context, me registration) {
	if !w.register(ctx, me) {
		return
	}
	for failing := false; sleep(ctx, w.cfg.Heartbeat); {
		err := w.server.post(ctx, "/workers/heartbeat",
			wire.WorkerHeartbeat{ID: me.id, URL: me.url, Load: int(w.load.Load())}, &struct{}{}, requestTime)
		if statusOf(err) == http.StatusNotFound {
			if !w.register(ctx, me) {
				return
			}
			err = nil
		}
		if err != nil && !failing && ctx.Err() == nil {
			w.cfg.Logger.Warn("the engine does not hear from this worker; trying on", "error", err)
		}
		failing = err != nil
	}
}

// partingTime bounds how long a worker that ends tries to say so.
const partingTime = 2 * time.Second

// sayGoodbye keeps the engine from sending jobs to a worker that ends, and from showing it.
func (w *Worker) sayGoodbye(me registration) {
	err := w.server.post(context.Background(), "/workers/deregister", wire.DeregisterWorker{ID: me.id}, &struct{}{}, partingTime)
	if err != nil && statusOf(err) != http.StatusNotFound {
		w.cfg.Logger.Warn("the engine was not told that this worker ends; it will notice by its silence", "error", err)
	}
}

// register tries until the engine has taken the registration. It is false when ctx ended first.
func (w *Worker) register(ctx context.Context, me registration) bool {
	for failing := false; ; failing = true {
		err := w.server.post(ctx, "/workers/register",
			wire.RegisterWorker{ID: me.id, URL: me.url, Type: me.kind, Services: me.services, Labels: me.labels, Secret: me.secret}, &struct{}{}, requestTime)
		if err == nil {
			w.cfg.Logger.Info("registered", "worker", me.id, "url", me.url, "services", me.services, "labels", me.labels)
			return true
		}
		if !failing && ctx.Err() == nil {
			w.cfg.Logger.Warn("the worker is not registered yet; trying on", "error", err)
		}
		if !sleep(ctx, min(registerPause, w.cfg.Heartbeat)) {
			return false
		}
	}
}
