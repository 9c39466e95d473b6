// Package ork serves the dialect of Ork's clients: workflows, their runs and the tasks of runs. Its
// words are workflow (flow), snapshot (version), run (task), task (step, or each unit of one that
// has several), success and cancelled; ids are UUIDs.
//
// What it promises: a workflow is published under its own name, in Ork's YAML or JSON, and
// everything in answers bears the names that were written; a run is shown by the version that it
// runs; errors are JSON. Reading order: ork.go, workflows.go, runs.go, tasks.go.
package ork

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
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
)

// dialect is thin handlers that decode, call and encode.
type dialect struct {
	api.Member
	Options
	feed *transitionFeed
}

// Options say what a member does with workflow files.
type Options struct {
	Root     string   // that the roots of workflows have to be inside; "" = they may be anywhere
	Programs Programs // nil = the member starts none, and looks at no files: whoever registers a workflow is not to learn which files its host has
	Workers  string   // file in place of the workers.yaml beside workflows; "" = there is none
}

// Programs are started by the member.
type Programs interface {
	// Inspect tells what the functions of a Python program take and return, in the form of
	// ork.Signatures.
	Inspect(context.Context, *flow.Program) (json.RawMessage, error)
}

// New serves the dialect from a member.
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

// claimedRoutes are routes on paths that another dialect owns: they are for this one when the run
// is.
func (d *dialect) claimedRoutes() map[string]api.On {
	post := func(h api.Handler) api.On { return api.On{"POST": h} }
	return map[string]api.On{
		"/runs/{run}":        {"GET": d.getRun},
		"/runs/{run}/pause":  post(d.pauseRun),
		"/runs/{run}/resume": post(d.resumeRun),
		"/runs/{run}/cancel": post(d.cancelRun),
	}
}

// Mount serves every route.
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

// errorBody is what an error looks like.
type errorBody struct {
	Error    string                   `json:"error"`
	Message  string                   `json:"message"`
	Path     string                   `json:"path,omitempty"`
	Problems []wire.DefinitionProblem `json:"problems,omitempty"`
}

// withErrors has errors answered in this dialect. What is too much is a bad request here.
func (d *dialect) withErrors(h api.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		api.Refuse(w, r, err, func(w http.ResponseWriter, v api.Verdict) {
			said := errorBody{Error: string(v.Kind), Message: v.Text()}
			var problems define.Problems
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

// addProblems tells problems one by one, and of the first one its place.
func (s *errorBody) addProblems(problems define.Problems) {
	for _, p := range problems {
		if s.Path == "" && p.Severity == define.SeverityError {
			s.Path = p.Path
		}
		s.Problems = append(s.Problems, wire.DefinitionProblem{File: p.File, Path: p.Path, Line: p.Line, Column: p.Column, Severity: string(p.Severity), Msg: p.Msg})
	}
}

// decodeBody reads a body, which must be a JSON object; none is an empty one.
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

// maxPage is how much of a list is told at once.
const maxPage = 200

// parsePaging reads which part of a list is asked for.
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

// timeOrNull is a time, null when there is none.
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
