package pocketflowhttp

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

func (g *graph) registerWorker(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	id := b.Text("id")
	if id == "" {
		return badRequest("id is missing")
	}
	err = g.Registry.Register(r.Context(), persistence.Worker{ID: id, URL: b.Text("url"),
		Type: cmp.Or(b.Text("type"), "http"), Services: b.Texts("services"), Labels: b.Texts("labels"), Secret: b.Text("secret")})
	if err != nil {
		return err
	}
	return writeOK(w)
}

// handleHeartbeat answers 404 to an unknown worker, so that it registers again.
func (g *graph) handleHeartbeat(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	if err := g.Registry.Heartbeat(r.Context(), b.Text("id"), b.Number("load")); err != nil {
		return err
	}
	return writeOK(w)
}

// deregisterWorker removes a worker. As with a heartbeat, an unknown worker gets 404.
func (g *graph) deregisterWorker(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	if err := g.Registry.Deregister(r.Context(), b.Text("id")); err != nil {
		return err
	}
	return writeOK(w)
}

func (g *graph) listWorkers(w http.ResponseWriter, r *http.Request) error {
	ttl := time.Duration(min(queryNumber(r, "ttl", 0), math.MaxInt32)) * time.Second
	if ttl == 0 {
		ttl = g.WorkerTTL
	}
	workers, err := g.liveWorkers(r, r.URL.Query().Get("service"), ttl)
	if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, workers)
	return nil
}

// allocateWorker returns the least loaded worker. Among equally loaded workers, it returns the one
// that registered first.
func (g *graph) allocateWorker(w http.ResponseWriter, r *http.Request) error {
	service := r.URL.Query().Get("service")
	workers, err := g.liveWorkers(r, service, g.WorkerTTL)
	if err != nil {
		return err
	}
	if len(workers) == 0 {
		return &api.Refusal{Status: http.StatusInternalServerError, Kind: api.Internal, Text: "no worker"}
	}
	api.WriteJSON(w, http.StatusOK, slices.MinFunc(workers, func(a, b wire.RegisteredWorker) int { return cmp.Compare(a.Load, b.Load) }))
	return nil
}

// liveWorkers lists the workers that offer a service and sent a heartbeat within ttl. A service of
// "" means any service, and a negative ttl means any time.
func (g *graph) liveWorkers(r *http.Request, service string, ttl time.Duration) ([]wire.RegisteredWorker, error) {
	all, err := g.Registry.List(r.Context())
	if err != nil {
		return nil, err
	}
	now := g.Engine.Now()
	live := []wire.RegisteredWorker{}
	for _, k := range all {
		age := now.Sub(time.UnixMilli(k.LastHeartbeat))
		if ttl >= 0 && age > ttl || service != "" && !slices.Contains(k.Services, service) {
			continue
		}
		live = append(live, g.toWireWorker(k, age))
	}
	return live, nil
}

func (g *graph) toWireWorker(k persistence.Worker, age time.Duration) wire.RegisteredWorker {
	status := "online"
	if age > g.WorkerTTL {
		status = "offline"
	}
	services := k.Services
	if services == nil {
		services = []string{}
	}
	return wire.RegisteredWorker{ID: k.ID, URL: k.URL, Services: services, Load: k.Load,
		LastHeartbeat: toSeconds(k.LastHeartbeat), Status: status, Type: k.Type, Labels: k.Labels}
}
