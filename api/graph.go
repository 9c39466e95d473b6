package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// graph serves the PocketFlow dialect: thin handlers that decode, call and encode.
type graph struct {
	engine   engine.Engine
	store    Store
	reader   Reader
	registry Registry
	limits   flow.Limits
	aliveFor time.Duration // after a worker's last sign of life
}

func newGraph(cfg Config) *graph {
	return &graph{engine: cfg.Engine, store: cfg.Store, reader: cfg.Reader, registry: cfg.Registry, limits: cfg.Limits, aliveFor: cfg.WorkerTTL}
}

type handler func(w http.ResponseWriter, r *http.Request) error

func (g *graph) table() map[string]handler {
	return map[string]handler{
		"/workers/register":   g.register,
		"/workers/heartbeat":  g.beat,
		"/workers/deregister": g.deregister,
		"/workers/list":       g.listWorkers,
		"/workers/allocate":   g.allocate,
		"/register":           g.register,
		"/heartbeat":          g.beat,
		"/list":               g.listWorkers,
		"/allocate":           g.allocate,
		"/flows":              methods("method", on{"POST": g.createFlow, "GET": g.listFlows}),
		"/flows/version":      methods("method", on{"POST": g.createVersion, "GET": g.listVersions}),
		"/flows/version/get":  g.getVersion,
		"/tasks":              methods("method", on{"POST": g.createTask, "GET": g.listTasks}),
		"/tasks/get":          g.getTask,
		"/tasks/runs":         g.listRuns,
		"/tasks/logs":         g.getLog,
		"/tasks/cancel":       methods("method", on{"POST": g.cancel}),
		"/tasks/signal":       methods("method", on{"POST": g.signal}),
		"/tasks/run_once":     methods("method", on{"POST": g.runOnce}),
		"/queue/poll":         methods("method not allowed", on{"POST": g.poll}),
		"/queue/complete":     methods("method not allowed", on{"POST": g.complete}),
		"/queue/heartbeat":    methods("method not allowed", on{"POST": g.extend}),
		"/queue/release":      methods("method not allowed", on{"POST": g.release}),
		"/queue/params":       methods("method not allowed", on{"POST": g.params}),
		"/queue/update_run":   methods("method not allowed", on{"POST": g.updateRun}),
	}
}

// mount serves every route under /api and, for clients without that prefix, bare. Pages share some
// bare paths, so a GET that asks for HTML gets the page.
func (g *graph) mount(s *Server) {
	for path, h := range g.table() {
		served := compatible(graphMethods, s.needToken(s.Shared(path, answered(h))))
		s.MountOpen("/api"+path, served)
		s.MountOpen(path, pageFirst(served))
	}
	s.MountOpen("/api/", http.HandlerFunc(unknownRoute))
	s.MountOpen("/", http.HandlerFunc(servePage))
}

// unknownRoute has the headers for OPTIONS alone, as the original.
func unknownRoute(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		compatible(graphMethods, nil).ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

func pageFirst(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asksForPage(r) {
			servePage(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func asksForPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(strings.ToLower(r.Header.Get("Accept")), "text/html")
}

// on says which method does what on a route. HEAD is a GET whose body nobody reads.
type on map[string]handler

func methods(otherwise string, by on) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		h, ok := by[method]
		if !ok {
			return &Refusal{http.StatusMethodNotAllowed, flow.Invalid, otherwise}
		}
		return h(w, r)
	}
}

func badRequest(text string) error { return &Refusal{http.StatusBadRequest, flow.Invalid, text} }
func notFound(text string) error   { return &Refusal{http.StatusNotFound, flow.NotFound, text} }

// answered has errors answered in this dialect.
func answered(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			Refuse(w, r, err, func(w http.ResponseWriter, v Verdict) { writeError(w, v.Status, v.Text()) })
		}
	})
}

func writeOK(w http.ResponseWriter) error {
	writeJSON(w, http.StatusOK, map[string]string{"ok": "1"})
	return nil
}

func writeID(w http.ResponseWriter, id string) error {
	writeJSON(w, http.StatusOK, map[string]string{"id": id})
	return nil
}
