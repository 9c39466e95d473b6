// Package approvals serves approvals and their answers, by token or by a signed link.
package approvals

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// Handler serves approvals and the links to them.
type Handler struct {
	Router  *route.Router
	Catalog *catalog.Flows

	Store    api.Store
	Reader   api.Reader
	Engine   engine.Engine
	Payloads *payload.Store
	// key that signs links; nil until the first use
	links atomic.Pointer[[]byte]
}

// AddRoutes adds the routes of the handler.
func (h *Handler) AddRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-approvals", Method: http.MethodGet, Path: "/v1/approvals", Tag: "approvals",
		Summary: "List approvals",
		Text: "Open approvals: the longest waiting first. Others: the newest first. A task may have " +
			"several."}, h.listApprovals)
	route.Register(rt, route.Operation{ID: "get-approval", Method: http.MethodGet, Path: "/v1/approvals/{approval}", Tag: "approvals",
		Summary: "Get an approval with everything needed to decide it"}, h.getApproval)
	route.Register(rt, route.Operation{ID: "answer-approval", Method: http.MethodPost, Path: "/v1/approvals/{approval}", Tag: "approvals",
		Summary: "Answer an approval",
		Text: "The first answer counts. A later one changes nothing and returns the first one, so a " +
			"request can be sent again."}, h.answerApproval)
	h.addApprovalLinkRoutes(rt)
}

// ApprovalPath identifies an approval.
type ApprovalPath struct {
	Approval string `path:"approval" minLength:"1" maxLength:"4000" doc:"ID of the approval from a list."`
}

type listApprovalsInput struct {
	route.Paging
	State string `query:"state" enum:"open,answered,ended" default:"open" doc:"State of the approvals. open: waiting for an answer. answered: answered by a person. ended: ended without an answer."`
	Flow  string `query:"flow" maxLength:"256" doc:"Slug of the flow, or its ID."`
	Task  string `query:"task" maxLength:"256" doc:"ID of the task."`
	Text  string `query:"q" maxLength:"256" doc:"Part of the title, or prefix of the task ID."`
}

func (h *Handler) listApprovals(ctx context.Context, in *listApprovalsInput) (*route.Response[wire.Page[wire.Approval]], error) {
	at, continued, err := in.ParseCursor()
	if err != nil {
		return nil, err
	}
	f := persistence.ApprovalFilter{State: flow.ApprovalState(in.State), Task: in.Task,
		Text: in.Text, Newest: in.State != string(flow.ApprovalOpen), Limit: in.Limit + 1}
	if continued {
		f.After = persistence.Spot{CreatedAt: at.At, ID: at.Name}
	}
	if in.Flow != "" {
		of, err := h.Catalog.FindFlow(ctx, "query.flow", in.Flow)
		if err != nil {
			return nil, err
		}
		f.FlowID = of.ID
	}
	if f.Through, err = h.searchBound(ctx, f); err != nil {
		return nil, err
	}
	rows, err := h.Store.ListApprovals(ctx, f)
	if err != nil {
		return nil, err
	}
	rows, more := route.CutPage(rows, in.Limit)
	page := wire.Page[wire.Approval]{Items: make([]wire.Approval, len(rows))}
	slugs := map[string]string{}
	for i := range rows {
		if page.Items[i], err = h.toApproval(ctx, &rows[i], slugs); err != nil {
			return nil, err
		}
	}
	switch {
	case more:
		page.Next = catalog.CursorOf(rows[len(rows)-1].Spot())
	case f.Through.ID != "":
		page.Next, page.SearchedUntil = catalog.CursorOf(f.Through), wire.Millis(f.Through.CreatedAt)
	}
	return &route.Response[wire.Page[wire.Approval]]{Body: page}, nil
}

// searchBound returns the last approval that a text search reads; zero if the search reads all
// remaining ones.
func (h *Handler) searchBound(ctx context.Context, f persistence.ApprovalFilter) (persistence.Spot, error) {
	if f.Text == "" || f.Task != "" {
		return persistence.Spot{}, nil
	}
	f.Text, f.Limit, f.Offset = "", 1, catalog.SearchedTasks-1
	rows, err := h.Store.ListApprovals(ctx, f)
	if err != nil || len(rows) == 0 {
		return persistence.Spot{}, err
	}
	return rows[0].Spot(), nil
}

// toApproval converts a row. It reads the slug of the flow unless slugs contains the slug.
func (h *Handler) toApproval(ctx context.Context, r *persistence.ApprovalRow, slugs map[string]string) (wire.Approval, error) {
	if slugs[r.FlowID] == "" {
		f, err := h.Store.Flow(ctx, r.FlowID)
		switch {
		case api.Missing(err): // the flow is being deleted
			slugs[r.FlowID] = r.FlowID
		case err != nil:
			return wire.Approval{}, err
		default:
			slugs[r.FlowID] = cmp.Or(f.Slug, f.ID)
		}
	}
	return wire.Approval{ID: r.ID(), Task: r.Task, Flow: slugs[r.FlowID], Scope: r.Scope,
		Node: r.Node, Visit: r.Visit, Key: r.Key, Title: r.Title, State: string(r.State),
		WaitingSince: wire.Millis(r.Since), Deadline: wire.Millis(r.Due), EndedAt: wire.Millis(r.EndedAt),
		AnsweredBy: r.By, Comment: r.Comment, Action: r.Action}, nil
}

func (h *Handler) approvalRow(ctx context.Context, id string) (*persistence.ApprovalRow, error) {
	row, err := h.Store.Approval(ctx, id)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, route.NewNotFoundError("path.approval",
			"GET /v1/approvals lists the open ones; approvals are deleted with their task",
			"there is no approval %.300q", id)
	}
	return row, err
}

type getApprovalInput struct {
	ApprovalPath
	render.Values
}

func (h *Handler) getApproval(ctx context.Context, in *getApprovalInput) (*route.Response[wire.ApprovalDetails], error) {
	row, err := h.approvalRow(ctx, in.Approval)
	if err != nil {
		return nil, err
	}
	q, err := h.toQuestion(ctx, row, &in.Values)
	if err != nil {
		return nil, err
	}
	return &route.Response[wire.ApprovalDetails]{Body: *q}, nil
}

// toQuestion returns an approval with all data needed to decide it.
func (h *Handler) toQuestion(ctx context.Context, row *persistence.ApprovalRow, values *render.Values) (*wire.ApprovalDetails, error) {
	told, err := h.toApproval(ctx, row, map[string]string{})
	if err != nil || row.State != flow.ApprovalOpen {
		return &wire.ApprovalDetails{Approval: told}, err
	}
	view, err := h.Reader.View(ctx, row.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(row.Task, err)
	}
	// if the question is not found, the approval has just ended
	open, _ := view.State.Question(row.Address)
	q := wire.ApprovalDetails{Approval: told, Text: open.Text, Form: open.Form.Schema(), Assignees: open.Assignees, Actions: open.Actions}
	for _, v := range open.Show {
		values.CutValues(h.Payloads, &v.Value)
		q.Values = append(q.Values, wire.ApprovalValue{Name: v.Name, Ref: v.Ref, Value: v.Value})
	}
	return &q, nil
}

type answerApprovalInput struct {
	ApprovalPath
	Body wire.ApprovalAnswer
}

func (h *Handler) answerApproval(ctx context.Context, in *answerApprovalInput) (*route.Response[wire.AnsweredApproval], error) {
	in.Body.AnsweredBy = api.Signer(ctx, in.Body.AnsweredBy)
	return h.answerOf(ctx, in.Approval, &in.Body)
}

// answerOf records an answer, unless the approval has one. A repeated answer is recognized by the
// task.
func (h *Handler) answerOf(ctx context.Context, id string, a *wire.ApprovalAnswer) (*route.Response[wire.AnsweredApproval], error) {
	row, err := h.approvalRow(ctx, id)
	if err != nil {
		return nil, err
	}
	if row.State == flow.ApprovalOpen {
		if err := h.fitsForm(ctx, row, a); err != nil {
			return nil, err
		}
	}
	_, refused := h.Engine.Do(ctx, engine.Order{Task: row.Task, Request: answerID(row, a),
		Command: flow.Answer{Address: row.Address, Action: a.Action, Value: a.Value, By: a.AnsweredBy, Comment: a.Comment}})
	if refused != nil && flow.ErrorKindOf(refused) != flow.Conflict {
		return nil, answerProblem(row.Task, refused)
	}
	if row, err = h.approvalRow(ctx, id); err != nil {
		return nil, err
	}
	if row.State != flow.ApprovalAnswered {
		return nil, &route.LocatedError{Where: "path.approval",
			Hint: "GET /v1/tasks/" + row.Task + " returns the state of the task",
			Err: flow.Errorf(flow.Conflict, "the task no longer waits for this decision, and "+
				"no decision was made")}
	}
	told, err := h.toApproval(ctx, row, map[string]string{})
	return &route.Response[wire.AnsweredApproval]{Body: wire.AnsweredApproval{Approval: told, Accepted: refused == nil}}, err
}

// answerID returns an id that is equal for equal answers of the same person.
func answerID(row *persistence.ApprovalRow, a *wire.ApprovalAnswer) string {
	h := sha256.New()
	for _, part := range []string{row.ID(), a.Action, string(a.Value), a.AnsweredBy, a.Comment} {
		fmt.Fprintf(h, "%d %s", len(part), part)
	}
	return "answer:" + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func answerProblem(task string, err error) error {
	switch {
	case api.Missing(err):
		return catalog.LocateTaskError(task, err)
	case flow.ErrorKindOf(err) == flow.Invalid:
		return route.LocateError("body", err)
	}
	return err
}

// fitsForm checks a value against the form, so that all faults are reported with their places.
func (h *Handler) fitsForm(ctx context.Context, row *persistence.ApprovalRow, a *wire.ApprovalAnswer) error {
	if a.Action != "" {
		return nil
	}
	view, err := h.Reader.View(ctx, row.Task)
	if err != nil {
		return catalog.LocateTaskError(row.Task, err)
	}
	open, ok := view.State.Question(row.Address)
	if !ok || open.Form == nil {
		return nil
	}
	if problems := open.Form.Check(api.OrNull(a.Value)); len(problems) > 0 {
		bad := &route.FormError{Problems: problems}
		return &route.LocatedError{Where: bad.ListFaults()[0].Field,
			Hint: "GET /v1/approvals/" + row.ID() + " has the form",
			Err: errors.Join(flow.Errorf(flow.Invalid, "%s",
				"the answer does not fit the form: "+problems.Below("value")), bad)}
	}
	return nil
}
