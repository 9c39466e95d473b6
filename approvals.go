package troupe

import (
	"context"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type (
	// Approval is a wait for the answer of a person, as /v1 returns it.
	Approval = wire.Approval
	// ApprovalQuestion is what a person who approves gets to read.
	ApprovalQuestion = wire.Question
	// ApprovalAnswer is the answer of a person.
	ApprovalAnswer = wire.Answer
	// ApprovalAnswered reports what an answer did.
	ApprovalAnswered = wire.Answered
	// ApprovalNewLink asks for a link by which a person can answer without a token.
	ApprovalNewLink = wire.NewLink
	// ApprovalLink is such a link.
	ApprovalLink = wire.Link
)

// ApprovalQuery picks approvals.
type ApprovalQuery = client.ApprovalQuery

// Approvals lists what tasks ask people for.
func (e *Engine) Approvals(ctx context.Context, q ApprovalQuery) (*Page[Approval], error) {
	return withTypedError(e.client.Approvals(ctx, q))
}

// Approval reads one, with what whoever decides has to know.
func (e *Engine) Approval(ctx context.Context, id string) (*ApprovalQuestion, error) {
	return withTypedError(e.client.Approval(ctx, id))
}

// AnswerApproval answers one. When somebody else did before, that one's answer counts, which is
// what is told.
func (e *Engine) AnswerApproval(ctx context.Context, id string, a ApprovalAnswer) (*ApprovalAnswered, error) {
	return withTypedError(e.client.AnswerApproval(ctx, id, a))
}

// LinkApproval makes a link by which somebody without a token may answer an approval.
func (e *Engine) LinkApproval(ctx context.Context, id string, l ApprovalNewLink) (*ApprovalLink, error) {
	return withTypedError(e.client.LinkApproval(ctx, id, l))
}
