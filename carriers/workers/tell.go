package workers

import (
	"context"
	"log/slog"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// These functions log workers that register, leave, become silent or return. If there are many,
// some lines are omitted and counted. Repeated refusals for the same reason are logged once.

// mostNamed is how many services or labels of a worker a log line lists.
const mostNamed = 20

func (r *Registry) logRegistration(ctx context.Context, w persistence.Worker, err error) {
	id := w.ID[:min(len(w.ID), maxName)]
	switch {
	case err == nil:
		r.logEvent("worker registered", id, slog.Any("services", w.Services[:min(len(w.Services), mostNamed)]),
			slog.Any("labels", w.Labels[:min(len(w.Labels), mostNamed)]), slog.String("url", w.URL))
	case ctx.Err() == nil && r.refusals.First(id+" "+err.Error()):
		r.opts.Logger.Warn("worker registration rejected; repeats are not logged", "worker", id, "error", err)
	}
}

// logOffline logs each worker once when it becomes silent, and once when it is back. Workers that
// were silent before the start are not logged.
func (r *Registry) logOffline() {
	for _, w := range r.listWorkers() {
		silent := time.Duration(r.opts.Now()-w.heartbeatAt.Load()) * time.Millisecond
		missed := silent > r.opts.OfflineTTL
		if w.loggedOffline.Swap(missed) == missed || !w.heard.Load() {
			continue
		}
		if missed {
			r.logEvent("worker is offline", w.ID, slog.Duration("silent", silent))
		} else {
			r.logEvent("worker reconnected", w.ID)
		}
	}
}

func (r *Registry) logEvent(what, worker string, more ...slog.Attr) {
	leftOut, ok := r.lines.Admit(time.Now())
	if !ok {
		return
	}
	attrs := append([]slog.Attr{slog.String("worker", worker)}, more...)
	if leftOut > 0 {
		attrs = append(attrs, slog.Int("others_not_logged", leftOut))
	}
	r.opts.Logger.LogAttrs(context.Background(), slog.LevelInfo, what, attrs...)
}
