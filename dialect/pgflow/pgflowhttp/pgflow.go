// Package pgflowhttp serves the dialect of pgflow's clients: runs of dags, their steps and tasks.
// Its words are run (task), step, task (unit) and cancelled.
package pgflowhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"reflect"
	"sync"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// pgflow is the family of routes. Its handlers only decode, call and encode.
type pgflow struct {
	engine engine.Engine
	store  api.Store
	reader api.Reader
	limits flow.Limits
	secret func(name string) error // returns an error for a secret that programs may not get

	// returns an error for a function that the member does not have
	function func(name string) error

	runs     Runs
	services flowServices

	ensureLocks [64]sync.Mutex // by a hash of the flow's slug
	seed        maphash.Seed
}

// New returns the dialect's routes for a member.
func New(m api.Member) api.Family {
	return &pgflow{engine: m.Engine, store: m.Store, reader: m.Reader, limits: m.Limits, secret: m.Secret, function: m.Func,
		runs:     Runs{m.Engine, m.Store, m.Reader},
		services: flowServices{byFlow: map[string]knownServices{}}, seed: maphash.MakeSeed()}
}

const notAllowed = "method not allowed"

func (p *pgflow) routeTable() map[string]api.On {
	post := func(h api.Handler) api.On { return api.On{"POST": h} }
	get := func(h api.Handler) api.On { return api.On{"GET": h} }
	return map[string]api.On{
		"/flows/{slug}":                     {"DELETE": p.deleteFlow},
		"/flows/{slug}/ensure":              post(p.handleEnsure),
		"/flows/{slug}/runs":                post(p.startRun),
		"/runs/{run}":                       get(p.getRun),
		"/runs/{run}/pause":                 post(p.pauseRun),
		"/runs/{run}/resume":                post(p.resumeRun),
		"/runs/{run}/cancel":                post(p.cancelRun),
		"/runs/{run}/tasks/complete":        post(p.completeTask),
		"/runs/{run}/tasks/fail":            post(p.failTask),
		"/runs/{run}/tasks/complete_direct": post(p.completeDirect),
		"/runs/{run}/tasks/append":          post(p.appendTasks),
		"/runs/{run}/events":                get(p.streamEvents),
		"/runs/{run}/wait":                  get(p.handleWait),
	}
}

// Mount adds all routes, and claims requests for this dialect on paths that the graph dialect owns.
func (p *pgflow) Mount(s *api.Server) {
	for path, route := range p.routeTable() {
		s.MountCompatible(path, route.Allowed(), s.Shared(path, p.withErrors(api.Methods(notAllowed, route))))
	}
	s.TakesDefinitions("/flows/{slug}/ensure", "/api/flows/{slug}/ensure")
	inList := func(b *api.Body) bool { return b.Has("max") || b.Has("flow") || b.Has("labels") }
	byID := func(b *api.Body) bool { return b.Has("id") && !b.Has("queue_id") }
	s.Claim("/queue/poll", inList, p.withErrors(p.pollTasks))
	s.Claim("/queue/complete", byID, p.withErrors(p.completeByID))
	s.Claim("/queue/heartbeat", byID, p.withErrors(p.extendByID))
	s.Claim("/flows", func(b *api.Body) bool { return b.Has("definition") }, p.withErrors(p.createFlow))
}

// pgflowError is the body of an error: a code for programs and a text for people.
type pgflowError struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// withErrors answers errors in the form of this dialect.
func (p *pgflow) withErrors(h api.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			p.refuseRequest(w, r, err)
		}
	})
}

func (p *pgflow) refuseRequest(w http.ResponseWriter, r *http.Request, err error) {
	api.Refuse(w, r, err, func(w http.ResponseWriter, v api.Verdict) {
		api.WriteJSON(w, v.Status, pgflowError{string(v.Kind), v.Text()})
	})
}

// decodeBody reads a body, which must be a JSON object. A missing body counts as an empty object.
func decodeBody(r *http.Request, v any) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(text, v); {
	case errors.As(err, &wrong) && wrong.Field != "":
		return flow.Errorf(flow.Invalid, "%s must be %s, is a %s", wrong.Field, typeName(wrong.Type), wrong.Value)
	case wrong != nil:
		return flow.Errorf(flow.Invalid, "the body must be a JSON object, is a %s", wrong.Value)
	case err != nil:
		return flow.Errorf(flow.Invalid, "the body must be a JSON object: %v", err)
	}
	return nil
}

// typeName returns a readable name for the type of a field.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
