package v1

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/types"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// approvalHandler serves approvals and the links to them.
type approvalHandler struct {
	router  *apiRouter
	catalog *flowCatalog

	store    api.Store
	reader   api.Reader
	engine   engine.Engine
	payloads *payload.Store
	// key that signs links to approvals; nil until it is needed
	links atomic.Pointer[[]byte]
}

func (h *approvalHandler) addApprovalRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "list-approvals", method: http.MethodGet, path: "/v1/approvals", tag: "approvals",
		summary: "List what tasks ask people for",
		text: "Of the open ones those first that have waited longest, of others those that " +
			"began last. A task that asks several people has several."}, h.listApprovals)
	registerOperation(rt, apiOperation{id: "get-approval", method: http.MethodGet, path: "/v1/approvals/{approval}", tag: "approvals",
		summary: "Read an approval, with what whoever decides has to know"}, h.getApproval)
	registerOperation(rt, apiOperation{id: "answer-approval", method: http.MethodPost, path: "/v1/approvals/{approval}", tag: "approvals",
		summary: "Answer an approval", text: "The first answer counts. Every later one is told " +
			"who gave that, and changes nothing, so a request may be sent again."}, h.answerApproval)
	h.addApprovalLinkRoutes(rt)
}

// ApprovalPath identifies an approval.
type ApprovalPath struct {
	Approval string `path:"approval" minLength:"1" maxLength:"4000" doc:"id of the approval, as lists tell it"`
}

type listApprovalsInput struct {
	Paging
	State string `query:"state" enum:"open,answered,over" default:"open" doc:"open: somebody is asked; answered: somebody has decided; over: nobody did, and nobody is asked any longer"`
	Flow  string `query:"flow" maxLength:"256" doc:"slug or id"`
	Task  string `query:"task" maxLength:"256" doc:"id of the task"`
	Text  string `query:"q" maxLength:"256" doc:"what the title says, or the id of the task begins with"`
}

func (h *approvalHandler) listApprovals(ctx context.Context, in *listApprovalsInput) (*bodyResponse[wire.Page[wire.Approval]], error) {
	at, continued, err := in.parseCursor()
	if err != nil {
		return nil, err
	}
	f := persistence.ApprovalFilter{State: flow.ApprovalState(in.State), Task: in.Task,
		Text: in.Text, Newest: in.State != string(flow.ApprovalOpen), Limit: in.Limit + 1}
	if continued {
		f.After = persistence.Spot{CreatedAt: at.at, ID: at.name}
	}
	if in.Flow != "" {
		of, err := h.catalog.flowBy(ctx, "query.flow", in.Flow)
		if err != nil {
			return nil, err
		}
		f.FlowID = of.ID
	}
	if f.Through, err = h.searchBound(ctx, f); err != nil {
		return nil, err
	}
	rows, err := h.store.ListApprovals(ctx, f)
	if err != nil {
		return nil, err
	}
	rows, more := cutPage(rows, in.Limit)
	page := wire.Page[wire.Approval]{Items: make([]wire.Approval, len(rows))}
	slugs := map[string]string{}
	for i := range rows {
		if page.Items[i], err = h.toApproval(ctx, &rows[i], slugs); err != nil {
			return nil, err
		}
	}
	switch {
	case more:
		page.Next = cursorOf(rows[len(rows)-1].Spot())
	case f.Through.ID != "":
		page.Next, page.Searched = cursorOf(f.Through), wire.Millis(f.Through.CreatedAt)
	}
	return &bodyResponse[wire.Page[wire.Approval]]{page}, nil
}

// searchBound returns the last approval that a text search reads; the zero Spot if it reads all
// that are left.
func (h *approvalHandler) searchBound(ctx context.Context, f persistence.ApprovalFilter) (persistence.Spot, error) {
	if f.Text == "" || f.Task != "" {
		return persistence.Spot{}, nil
	}
	f.Text, f.Limit, f.Offset = "", 1, searchedTasks-1
	rows, err := h.store.ListApprovals(ctx, f)
	if err != nil || len(rows) == 0 {
		return persistence.Spot{}, err
	}
	return rows[0].Spot(), nil
}

// toApproval converts a row, and reads the slug of its flow unless slugs has it.
func (h *approvalHandler) toApproval(ctx context.Context, r *persistence.ApprovalRow, slugs map[string]string) (wire.Approval, error) {
	if slugs[r.FlowID] == "" {
		f, err := h.store.Flow(ctx, r.FlowID)
		switch {
		case api.Missing(err): // the flow is just being deleted
			slugs[r.FlowID] = r.FlowID
		case err != nil:
			return wire.Approval{}, err
		default:
			slugs[r.FlowID] = orElse(f.Slug, f.ID)
		}
	}
	return wire.Approval{ID: r.ID(), Task: r.Task, Flow: slugs[r.FlowID], Scope: r.Scope,
		Node: r.Node, Visit: r.Visit, Key: r.Key, Title: r.Title, State: string(r.State),
		Since: wire.Millis(r.Since), Until: wire.Millis(r.Due), EndedAt: wire.Millis(r.EndedAt),
		By: r.By, Comment: r.Comment, Action: r.Action}, nil
}

func (h *approvalHandler) approvalRow(ctx context.Context, id string) (*persistence.ApprovalRow, error) {
	row, err := h.store.Approval(ctx, id)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, newNotFoundError("path.approval",
			"GET /v1/approvals lists those that are open; they go with their task",
			"there is no approval %.300q", id)
	}
	return row, err
}

type getApprovalInput struct {
	ApprovalPath
	Values
}

func (h *approvalHandler) getApproval(ctx context.Context, in *getApprovalInput) (*bodyResponse[wire.Question], error) {
	row, err := h.approvalRow(ctx, in.Approval)
	if err != nil {
		return nil, err
	}
	q, err := h.toQuestion(ctx, row, &in.Values)
	if err != nil {
		return nil, err
	}
	return &bodyResponse[wire.Question]{*q}, nil
}

// toQuestion returns the approval with everything needed to decide it.
func (h *approvalHandler) toQuestion(ctx context.Context, row *persistence.ApprovalRow, values *Values) (*wire.Question, error) {
	told, err := h.toApproval(ctx, row, map[string]string{})
	if err != nil || row.State != flow.ApprovalOpen {
		return &wire.Question{Approval: told}, err
	}
	view, err := h.reader.View(ctx, row.Task)
	if err != nil {
		return nil, noTask(row.Task, err)
	}
	// not found means that it has just ended, which the next reader sees
	open, _ := view.State.Question(row.Address)
	q := wire.Question{Approval: told, Text: open.Text, Form: open.Form.Schema(), Assignees: open.Assignees, Actions: open.Actions}
	for _, v := range open.Show {
		values.cutValues(h.payloads, &v.Value)
		q.Show = append(q.Show, wire.ShownValue{Name: v.Name, Ref: v.Ref, Value: v.Value})
	}
	return &q, nil
}

type answerApprovalInput struct {
	ApprovalPath
	Body wire.Answer
}

func (h *approvalHandler) answerApproval(ctx context.Context, in *answerApprovalInput) (*bodyResponse[wire.Answered], error) {
	in.Body.By = api.Signer(ctx, in.Body.By)
	return h.answerOf(ctx, in.Approval, &in.Body)
}

// answerOf records an answer, unless there is one already. The task recognizes an answer it has
// accepted, so the same one may be sent twice.
func (h *approvalHandler) answerOf(ctx context.Context, id string, a *wire.Answer) (*bodyResponse[wire.Answered], error) {
	row, err := h.approvalRow(ctx, id)
	if err != nil {
		return nil, err
	}
	if row.State == flow.ApprovalOpen {
		if err := h.fitsForm(ctx, row, a); err != nil {
			return nil, err
		}
	}
	_, refused := h.engine.Do(ctx, engine.Order{Task: row.Task, Request: answerID(row, a),
		Command: flow.Answer{Address: row.Address, Action: a.Action, Value: a.Value, By: a.By, Comment: a.Comment}})
	if refused != nil && flow.ErrorKindOf(refused) != flow.Conflict {
		return nil, answerProblem(row.Task, refused)
	}
	if row, err = h.approvalRow(ctx, id); err != nil {
		return nil, err
	}
	if row.State != flow.ApprovalAnswered {
		return nil, &locatedError{where: "path.approval",
			hint: "GET /v1/tasks/" + row.Task + " tells what became of the task",
			err: flow.Errorf(flow.Conflict, "nobody waits for this decision any longer, and "+
				"nobody has made it")}
	}
	told, err := h.toApproval(ctx, row, map[string]string{})
	return &bodyResponse[wire.Answered]{wire.Answered{Approval: told, Counts: refused == nil}}, err
}

// answerID returns an id that is the same for the same answer of the same person.
func answerID(row *persistence.ApprovalRow, a *wire.Answer) string {
	h := sha256.New()
	for _, part := range []string{row.ID(), a.Action, string(a.Value), a.By, a.Comment} {
		fmt.Fprintf(h, "%d %s", len(part), part)
	}
	return "answer:" + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func answerProblem(task string, err error) error {
	switch {
	case api.Missing(err):
		return noTask(task, err)
	case flow.ErrorKindOf(err) == flow.Invalid:
		return locateError("body", err)
	}
	return err
}

// badAnswer is the error for a value that does not fit the form, with the place of each fault.
type badAnswer struct{ problems types.Problems }

func (e *badAnswer) Error() string { return e.problems.Error() }

func (e *badAnswer) listFaults() (list []wire.Fault) {
	for _, p := range e.problems {
		list = append(list, wire.Fault{What: p.Msg, Where: strings.Replace(p.Where(), "$params", "body.value", 1)})
	}
	return list
}

// fitsForm checks a value before its task does, to report all faults with their places.
func (h *approvalHandler) fitsForm(ctx context.Context, row *persistence.ApprovalRow, a *wire.Answer) error {
	if a.Action != "" {
		return nil
	}
	view, err := h.reader.View(ctx, row.Task)
	if err != nil {
		return noTask(row.Task, err)
	}
	open, ok := view.State.Question(row.Address)
	if !ok || open.Form == nil {
		return nil
	}
	if problems := open.Form.Check(api.OrNull(a.Value)); len(problems) > 0 {
		bad := &badAnswer{problems}
		return &locatedError{where: bad.listFaults()[0].Where,
			hint: "GET /v1/approvals/" + row.ID() + " has the form",
			err: errors.Join(flow.Errorf(flow.Invalid, "%s",
				"the answer does not fit the form: "+problems.Below("value")), bad)}
	}
	return nil
}
