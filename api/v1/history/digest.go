package history

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *Handler) addDigestRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "get-digest", Method: http.MethodGet, Path: "/v1/tasks/{task}/digest", Tag: "tasks",
		Summary: "Get a task's digest",
		Text: "All nodes of the requested scopes, in columns and without values, also for an ended " +
			"task. The cost grows with the flow, not with the history. The channel digest:ID of " +
			"/v1/ws sends the following changes."}, h.getDigest)
}

type digestInput struct {
	catalog.TaskPath
	Scope []string `query:"scope,explode" maxItems:"50" maxLength:"20000" doc:"Scopes: inner_scope of a step, or / for the task's root. Absent = the root, and the scope of compensations and clean-up once it has started."`
	At    int64    `query:"at_seq" minimum:"0" doc:"Number of a journal row (seq of an event), to get the task's state after that row; 0 = the current state."`
}

func (h *Handler) getDigest(ctx context.Context, in *digestInput) (*route.Response[wire.Digest], error) {
	view, err := h.viewAt(ctx, in.Task, in.At)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	d := digestBuilder{view: view, scopeFilter: in.Scope}
	for _, path := range d.scopePaths() {
		at, err := h.findScope(ctx, view, path, in.At)
		if flow.ErrorKindOf(err) == flow.NotFound {
			return nil, route.NewNotFoundError("query.scope", "send inner_scope of a step that has started", "%s", err.Error())
		}
		if err != nil {
			return nil, catalog.LocateTaskError(in.Task, err)
		}
		d.addScope(path, at)
	}
	answer := d.buildDigest()
	if in.At > 0 {
		return &route.Response[wire.Digest]{Body: answer}, nil
	}
	if err := h.Positions.AddToWaits(ctx, in.Task, answer.Waits); err != nil {
		return nil, err
	}
	return &route.Response[wire.Digest]{Body: answer}, nil
}

// viewAt reads a task in its state after a row of its journal. row 0 means the current state.
func (h *Handler) viewAt(ctx context.Context, task string, row int64) (*persistence.View, error) {
	if row == 0 {
		return h.Reader.View(ctx, task)
	}
	return h.Reader.ViewAt(ctx, task, row)
}

// findScope finds a scope that had begun by the given row.
func (h *Handler) findScope(ctx context.Context, view *persistence.View, path string, row int64) (persistence.Sight, error) {
	if row > 0 && !view.State.HasBegun(path) {
		return persistence.Sight{}, flow.Errorf(flow.NotFound, "no step had started in the scope %.200q", path)
	}
	return h.Reader.Sight(ctx, view, path)
}

// digestBuilder computes the progress of the nodes in some scopes, and the changes since the last
// report.
type digestBuilder struct {
	view        *persistence.View
	scopeFilter []string // scopes to report; empty means the root and the closing scope
	scopes      []*seenScope
}

// seenScope is a scope that was reported, with its last digest.
type seenScope struct {
	path       string
	at         persistence.Sight
	order      []*flow.PlanNode
	lastDigest []flow.NodeDigest
}

// rootScope is the name of the root scope where an empty text is impossible.
const rootScope = "/"

// scopePaths returns the paths of the scopes to report.
func (d *digestBuilder) scopePaths() []string {
	if len(d.scopeFilter) > 0 {
		paths := slices.Clone(d.scopeFilter)
		for i := range paths {
			paths[i] = strings.TrimPrefix(paths[i], rootScope)
		}
		return paths
	}
	if closing := d.view.State.ClosingScope(); closing != "" {
		return []string{"", closing}
	}
	return []string{""}
}

// addScope adds a scope.
func (d *digestBuilder) addScope(path string, at persistence.Sight) {
	d.scopes = append(d.scopes, &seenScope{path: path, at: at, order: at.Scope.Plan.Order()})
}

// addBegunScopes adds scopes that have begun since the last call, and reports whether there are
// any.
func (d *digestBuilder) addBegunScopes() (more bool) {
	for _, path := range d.scopePaths() {
		known := slices.ContainsFunc(d.scopes, func(sc *seenScope) bool { return sc.path == path })
		if sc := d.view.State.Scope(path); sc != nil && !known {
			d.addScope(path, persistence.Sight{State: d.view.State, Scope: sc})
			more = true
		}
	}
	return more
}

func (d *digestBuilder) buildHead() wire.DigestHead {
	state := d.view.State
	h := wire.DigestHead{Seq: d.view.Seq, State: string(state.Status), Paused: state.Paused(), Error: state.Error,
		UpdatedAt: wire.Millis(state.UpdatedAt), EndedAt: wire.Millis(state.EndedAt), Waits: []wire.WaitReason{}}
	for _, w := range flow.Waiting(state) {
		h.Waits = append(h.Waits, render.ToWait(state.Task, &w))
	}
	return h
}

// buildDigest returns the complete digest.
func (d *digestBuilder) buildDigest() wire.Digest {
	v := d.view
	all := wire.Digest{Task: v.ID, Flow: cmp.Or(v.FlowSlug, v.FlowID), Version: v.VersionNumber,
		VersionID: v.VersionID, Mode: string(v.State.Plan.Root.Mode()),
		BaseMS: v.State.CreatedAt, CreatedAt: wire.Millis(v.State.CreatedAt),
		Scopes: make([]wire.ScopeDigest, 0, len(d.scopes)), DigestHead: d.buildHead()}
	for _, sc := range d.scopes {
		sc.lastDigest = sc.at.State.Digest(sc.at.Scope, sc.order)
		told := wire.ScopeDigest{Scope: sc.path, Mode: string(sc.at.Scope.Plan.Mode()),
			Nodes: make([]string, len(sc.order)), DigestColumns: columnsOf(sc.lastDigest,
				everyIndex(len(sc.lastDigest)), all.BaseMS)}
		for i, n := range sc.order {
			told.Nodes[i] = n.Key
		}
		all.Scopes = append(all.Scopes, told)
	}
	return all
}

// buildChanges returns the changes since the last report.
func (d *digestBuilder) buildChanges() wire.DigestChanges {
	all := wire.DigestChanges{DigestHead: d.buildHead(), Scopes: []wire.ScopeChanges{}}
	for _, sc := range d.scopes {
		now, at := sc.at.State.Digest(sc.at.Scope, sc.order), []int{}
		for i := range now {
			if now[i] != sc.lastDigest[i] {
				at = append(at, i)
			}
		}
		if sc.lastDigest = now; len(at) > 0 {
			all.Scopes = append(all.Scopes, wire.ScopeChanges{Scope: sc.path, Indexes: at,
				DigestColumns: columnsOf(now, at, d.view.State.CreatedAt)})
		}
	}
	return all
}

func everyIndex(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// maxErrorNodes is the maximum number of nodes of a scope with error texts.
const maxErrorNodes = 100

// digestStates maps states to their numbers in digests.
var digestStates = map[flow.StepStatus]int{flow.StepCreated: 0, flow.StepStarted: 1,
	flow.StepCompleted: 2, flow.StepFailed: 3, flow.StepSkipped: 4}

// columnsOf returns the columns for the nodes at the given indexes.
func columnsOf(nodes []flow.NodeDigest, at []int, base int64) wire.DigestColumns {
	column := func(of func(*flow.NodeDigest) int) []int {
		list := make([]int, len(at))
		for i, index := range at {
			list[i] = of(&nodes[index])
		}
		return list
	}
	count := func(of func(*flow.NodeDigest) int) []int {
		if !slices.ContainsFunc(at, func(index int) bool { return of(&nodes[index]) != 0 }) {
			return nil
		}
		return column(of)
	}
	since := func(of func(*flow.NodeDigest) int64) []int64 {
		list := make([]int64, len(at))
		for i, index := range at {
			if list[i] = -1; of(&nodes[index]) != 0 {
				list[i] = of(&nodes[index]) - base
			}
		}
		return list
	}
	c := wire.DigestColumns{
		State:     column(func(n *flow.NodeDigest) int { return digestStates[n.Status] }),
		Visit:     column(func(n *flow.NodeDigest) int { return n.Visit }),
		Total:     count(func(n *flow.NodeDigest) int { return n.Units.Total }),
		Done:      count(func(n *flow.NodeDigest) int { return n.Units.Done }),
		Failed:    count(func(n *flow.NodeDigest) int { return n.Units.Failed }),
		InFlight:  count(func(n *flow.NodeDigest) int { return n.Units.Flying }),
		Retrying:  count(func(n *flow.NodeDigest) int { return n.Units.Retrying }),
		EnteredMS: since(func(n *flow.NodeDigest) int64 { return n.StartedAt }),
		EndedMS:   since(func(n *flow.NodeDigest) int64 { return n.EndedAt }),
	}
	addTexts(&c, nodes, at)
	return c
}

// addTexts adds reasons and errors, which few nodes have.
func addTexts(c *wire.DigestColumns, nodes []flow.NodeDigest, at []int) {
	for _, index := range at {
		n := &nodes[index]
		if n.Reason != "" {
			c.Reason = withText(c.Reason, index, n.Reason)
		}
		if n.Error != "" && len(c.Error) < maxErrorNodes {
			c.Error = withText(c.Error, index, n.Error)
		}
		if n.Held {
			c.Held = append(c.Held, index)
		}
	}
}

func withText(m map[int]string, index int, text string) map[int]string {
	if m == nil {
		m = map[int]string{}
	}
	m[index] = text
	return m
}
