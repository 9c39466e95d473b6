package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/troupe-engine/troupe/api/wire"
)

// ApprovalQuery selects approvals.
type ApprovalQuery struct {
	Paging
	State string // open, answered or over; "" means open
	Flow  string // slug or id
	Task  string // id
	Text  string // text in the title, or prefix of the task's id
}

// Approvals lists the decisions that tasks ask people for.
func (c *Client) Approvals(ctx context.Context, a ApprovalQuery) (*wire.Page[wire.Approval], error) {
	q := a.Paging.queryValues()
	setNonEmpty(q, "state", a.State)
	setNonEmpty(q, "flow", a.Flow)
	setNonEmpty(q, "task", a.Task)
	setNonEmpty(q, "q", a.Text)
	return getJSON[wire.Page[wire.Approval]](ctx, c, "/v1/approvals", q)
}

// Approval reads an approval with everything needed to decide it.
func (c *Client) Approval(ctx context.Context, id string) (*wire.ApprovalDetails, error) {
	return getJSON[wire.ApprovalDetails](ctx, c, approvalPath(id), nil)
}

// AnswerApproval answers an approval. If the approval has an answer already, that answer is
// returned.
func (c *Client) AnswerApproval(ctx context.Context, id string, a wire.ApprovalAnswer) (*wire.AnsweredApproval, error) {
	body, err := encodeBody(a)
	if err != nil {
		return nil, err
	}
	return doCall[wire.AnsweredApproval](ctx, c, apiCall{method: http.MethodPost, path: approvalPath(id),
		body: body, kind: "application/json", repeatable: true})
}

// LinkApproval creates a link that lets a person answer an approval without a token.
func (c *Client) LinkApproval(ctx context.Context, id string, l wire.LinkRequest) (*wire.ApprovalLink, error) {
	body, err := encodeBody(l)
	if err != nil {
		return nil, err
	}
	return doCall[wire.ApprovalLink](ctx, c, apiCall{method: http.MethodPost,
		path: approvalPath(id) + "/link", body: body, kind: "application/json", repeatable: true})
}

func approvalPath(id string) string { return "/v1/approvals/" + url.PathEscape(id) }
