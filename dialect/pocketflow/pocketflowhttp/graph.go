// Package pocketflowhttp serves the PocketFlow dialect: flows in graph mode, their tasks and runs,
// workers, and the queue. Its words are task, run (an attempt) and waiting_queue. For its first
// clients, names of fields match in any case, and bodies that cannot be read count as empty.
package pocketflowhttp

import (
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/flow"
)

// graph is the dialect's family of routes. Its handlers only decode, call and encode.
type graph struct{ api.Member }

// New returns the dialect's routes for a member.
func New(m api.Member) api.Family {
	return &graph{m.OrDefault()}
}

func (g *graph) routeTable() map[string]api.Handler {
	return map[string]api.Handler{
		"/workers/register":   g.registerWorker,
		"/workers/heartbeat":  g.handleHeartbeat,
		"/workers/deregister": g.deregisterWorker,
		"/workers/list":       g.listWorkers,
		"/workers/allocate":   g.allocateWorker,
		"/register":           g.registerWorker,
		"/heartbeat":          g.handleHeartbeat,
		"/list":               g.listWorkers,
		"/allocate":           g.allocateWorker,
		"/flows":              api.Methods("method", api.On{"POST": g.createFlow, "GET": g.listFlows}),
		"/flows/version":      api.Methods("method", api.On{"POST": g.createVersion, "GET": g.listVersions}),
		"/flows/version/get":  g.getVersion,
		"/tasks":              api.Methods("method", api.On{"POST": g.createTask, "GET": g.listTasks}),
		"/tasks/get":          g.getTask,
		"/tasks/runs":         g.listRuns,
		"/tasks/logs":         g.getLog,
		"/tasks/cancel":       api.Methods("method", api.On{"POST": g.cancelTask}),
		"/tasks/signal":       api.Methods("method", api.On{"POST": g.signalTask}),
		"/tasks/run_once":     api.Methods("method", api.On{"POST": g.runOnce}),
		"/queue/poll":         api.Methods("method not allowed", api.On{"POST": g.pollQueue}),
		"/queue/complete":     api.Methods("method not allowed", api.On{"POST": g.completeJob}),
		"/queue/heartbeat":    api.Methods("method not allowed", api.On{"POST": g.handleExtend}),
		"/queue/release":      api.Methods("method not allowed", api.On{"POST": g.releaseClaims}),
		"/queue/params":       api.Methods("method not allowed", api.On{"POST": g.sendParams}),
		"/queue/update_run":   api.Methods("method not allowed", api.On{"POST": g.updateRun}),
	}
}

// Mount adds all routes.
func (g *graph) Mount(s *api.Server) {
	for path, h := range g.routeTable() {
		s.MountCompatible(path, api.CommonMethods, s.Shared(path, withErrors(h)))
	}
	s.TakesDefinitions("/flows", "/api/flows", "/flows/version", "/api/flows/version")
}

func badRequest(text string) error {
	return &api.Refusal{Status: http.StatusBadRequest, Kind: flow.Invalid, Text: text}
}
func notFound(text string) error {
	return &api.Refusal{Status: http.StatusNotFound, Kind: flow.NotFound, Text: text}
}

// withErrors answers errors in the form of this dialect.
func withErrors(h api.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			api.Refuse(w, r, err, func(w http.ResponseWriter, v api.Verdict) { api.WriteError(w, v.Status, v.Text()) })
		}
	})
}

func writeOK(w http.ResponseWriter) error {
	api.WriteJSON(w, http.StatusOK, map[string]string{"ok": "1"})
	return nil
}

func writeID(w http.ResponseWriter, id string) error {
	api.WriteJSON(w, http.StatusOK, map[string]string{"id": id})
	return nil
}
