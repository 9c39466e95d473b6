// Package orkhttp serves the dialect of Ork's clients: workflows, their runs and the tasks of runs.
// Its words are workflow (flow), snapshot (version), run (task), task (step, or each unit of a step
// with several), success and cancelled; ids are UUIDs.
//
// A workflow is published under its own name, in Ork's YAML or JSON, and answers use the names from
// its file. A run is shown with the version that it runs. Errors are JSON. Reading order: ork.go,
// workflows.go, runs.go, tasks.go.
package orkhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// dialect is the family of routes. Its handlers only decode, call and encode.
type dialect struct {
	api.Member
	Options
	feed *transitionFeed
}

// Options configures how a member treats workflow files.
type Options struct {
	Root string // folder that must contain the roots of workflows; "" allows any
	// nil means that the member starts no programs and reads no files, so that a caller cannot find
	// out which files its host has
	Programs Programs
	Workers  string // file that replaces the workers.yaml beside workflows; "" if there is none
}

// Programs runs the programs of workflows.
type Programs interface {
	// Inspect returns the parameters and results of the functions of a Python program, in the form
	// of ork.Signatures.
	Inspect(context.Context, *flow.Program) (json.RawMessage, error)
}

// New returns the dialect's routes for a member.
func New(m api.Member, o Options) api.Family {
	d := &dialect{Member: m.OrDefault(), Options: o}
	d.feed = &transitionFeed{d: d, listeners: map[*feedListener]bool{}}
	return d
}

const notAllowed = "method not allowed"

func (d *dialect) routeTable() map[string]api.On {
	post := func(h api.Handler) api.On { return api.On{"POST": h} }
	get := func(h api.Handler) api.On { return api.On{"GET": h} }
	return map[string]api.On{
		"/workflows":                    {"GET": d.listWorkflows, "POST": d.createWorkflow},
		"/workflows/{name}":             {"GET": d.getWorkflow, "DELETE": d.deleteWorkflow},
		"/workflows/{name}/schedule":    {"PATCH": d.patchSchedule},
		"/workflows/{name}/runs":        post(d.startNamed),
		"/runs":                         {"GET": d.listRuns, "POST": d.startRun},
		"/runs/{run}/tasks":             get(d.listTasks),
		"/runs/{run}/retry":             post(d.retryRun),
		"/runs/{run}/tasks/{name}/logs": get(d.serveLogs),
		"/tasks/{task}/pause":           post(d.pauseTask),
		"/tasks/{task}/resume":          post(d.resumeTask),
	}
}

// claimedRoutes returns routes on paths that another dialect owns. They serve requests about runs
// of this dialect.
func (d *dialect) claimedRoutes() map[string]api.On {
	post := func(h api.Handler) api.On { return api.On{"POST": h} }
	return map[string]api.On{
		"/runs/{run}":        {"GET": d.getRun},
		"/runs/{run}/pause":  post(d.pauseRun),
		"/runs/{run}/resume": post(d.resumeRun),
		"/runs/{run}/cancel": post(d.cancelRun),
	}
}

// Mount adds all routes.
func (d *dialect) Mount(s *api.Server) {
	for path, route := range d.routeTable() {
		s.MountCompatible(path, route.Allowed(), d.withErrors(api.Methods(notAllowed, route)))
	}
	for path, route := range d.claimedRoutes() {
		s.ClaimWhere(path, d.isOrkRun, d.withErrors(api.Methods(notAllowed, route)))
	}
	s.MountStream("GET /ws", http.HandlerFunc(d.feed.serveSocket))
	s.MountStream("GET /api/ws", http.HandlerFunc(d.feed.serveSocket))
	s.TakesDefinitions("/workflows", "/api/workflows")
}

// isOrkRun reports whether a request is about a run of a workflow of Ork.
func (d *dialect) isOrkRun(r *http.Request) bool {
	row, err := d.Store.Task(r.Context(), d.runID(r))
	if err != nil {
		return false
	}
	plan, err := d.Reader.Plan(r.Context(), row.VersionID)
	return err == nil && plan.Profile == flow.ProfileOrk
}

// errorBody is the body of an error.
type errorBody struct {
	Error    string                   `json:"error"`
	Message  string                   `json:"message"`
	Path     string                   `json:"path,omitempty"`
	Problems []wire.DefinitionProblem `json:"problems,omitempty"`
}

// withErrors answers errors in the form of this dialect. Here a request that is too large is a bad
// request.
func (d *dialect) withErrors(h api.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		api.Refuse(w, r, err, func(w http.ResponseWriter, v api.Verdict) {
			said := errorBody{Error: string(v.Kind), Message: v.Text()}
			var problems definition.Problems
			if errors.As(err, &problems) {
				said.addProblems(problems)
			}
			if v.Status == http.StatusUnprocessableEntity {
				v.Status = http.StatusBadRequest
			}
			api.WriteJSON(w, v.Status, said)
		})
	})
}

// addProblems adds all problems, and the place of the first error.
func (s *errorBody) addProblems(problems definition.Problems) {
	for _, p := range problems {
		if s.Path == "" && p.Severity == definition.SeverityError {
			s.Path = p.Path
		}
		s.Problems = append(s.Problems, wire.DefinitionProblem{File: p.File, Path: p.Path,
			Line: p.Line, Column: p.Column, Severity: string(p.Severity), Message: p.Msg})
	}
}

// decodeBody reads a body, which must be a JSON object. A missing body counts as an empty object.
func decodeBody(r *http.Request, v any) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return decodeText(text, v)
}

func decodeText(text []byte, v any) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(text, v); {
	case errors.As(err, &wrong) && wrong.Field != "":
		return flow.Errorf(flow.Invalid, "%s is a %s, which it cannot be", wrong.Field, wrong.Value)
	case wrong != nil:
		return flow.Errorf(flow.Invalid, "the body must be a JSON object, is a %s", wrong.Value)
	case err != nil:
		return flow.Errorf(flow.Invalid, "the body must be a JSON object: %v", err)
	}
	return nil
}

// listPage is a part of a list.
type listPage[T any] struct {
	Items   []T  `json:"items"`
	Total   int  `json:"total"`
	Limit   int  `json:"limit"`
	Offset  int  `json:"offset"`
	HasMore bool `json:"has_more"`
}

func pageOf[T any](items []T, total, limit, offset int) listPage[T] {
	if items == nil {
		items = []T{}
	}
	return listPage[T]{items, total, limit, offset, len(items) < total-offset}
}

// maxPage is the greatest number of items in a page.
const maxPage = 200

// parsePaging reads the requested part of a list.
func parsePaging(r *http.Request, usual int) (limit, offset int, err error) {
	limit, offset = usual, 0
	for name, to := range map[string]*int{"limit": &limit, "offset": &offset} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		if *to, err = strconv.Atoi(text); err != nil || *to < 0 {
			return 0, 0, flow.Errorf(flow.Invalid, "%s must be a whole number of at least 0, is %.40q", name, text)
		}
	}
	return min(max(limit, 1), maxPage), offset, nil
}

// timeOrNull converts a time. It returns nil if there is no time.
func timeOrNull(ms int64) *wire.Time {
	if ms == 0 {
		return nil
	}
	t := wire.Millis(ms)
	return &t
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
