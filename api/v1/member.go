package v1

import (
	"context"
	"net/http"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
)

func (s *service) memberRoutes() {
	serve(s, operation{id: "list-workers", method: http.MethodGet, path: "/v1/workers", tag: "jobs",
		summary: "List the workers"}, s.workers)
	serve(s, operation{id: "forget-worker", method: http.MethodDelete, path: "/v1/workers/{worker}", tag: "jobs",
		summary: "Forget a worker",
		text:    "It gets no more jobs. What it has begun it may finish; what it has claimed and does not give back goes to others when the claims run out."}, s.forgetWorker)
	serve(s, operation{id: "get-info", method: http.MethodGet, path: "/v1/info", tag: "member",
		summary: "With whom am I speaking?"}, s.info)
}

func (s *service) info(context.Context, *struct{}) (*body[wire.Info], error) {
	return &body[wire.Info]{wire.Info{Version: s.Version, Store: s.StoreKind, Member: s.Name, Now: wire.Time{Time: s.Engine.Now()}}}, nil
}

type forgetWorkerInput struct {
	Worker string `path:"worker" maxLength:"256" doc:"id of the worker"`
}

func (s *service) forgetWorker(ctx context.Context, in *forgetWorkerInput) (*struct{}, error) {
	err := s.Registry.Deregister(ctx, in.Worker)
	if api.Missing(err) {
		return nil, missing("path.worker", "GET /v1/workers lists them; this member itself cannot be forgotten", "no worker %.80q is registered", in.Worker)
	}
	return nil, err
}

func (s *service) workers(ctx context.Context, _ *struct{}) (*body[wire.KnownWorkers], error) {
	known, err := s.Registry.List(ctx)
	if err != nil {
		return nil, err
	}
	now := s.Engine.Now()
	answer := wire.KnownWorkers{Items: make([]wire.KnownWorker, len(known))}
	for i, k := range known {
		w := wire.KnownWorker{ID: k.ID, URL: k.URL, Type: k.Type, Services: k.Services, Labels: k.Labels, Load: k.Load, State: "online",
			LastHeartbeat: wire.Millis(k.LastHeartbeat), RegisteredAt: wire.Millis(k.RegisteredAt)}
		if w.Services == nil {
			w.Services = []string{}
		}
		if now.Sub(time.UnixMilli(k.LastHeartbeat)) > s.WorkerTTL {
			w.State = "offline"
		}
		answer.Items[i] = w
	}
	return &body[wire.KnownWorkers]{answer}, nil
}
