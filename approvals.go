package troupe

import (
	"context"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type (
	// Approval is a wait for the answer of a person, as /v1 returns it.
	Approval = wire.Approval
	// ApprovalQuestion is the text and data that an approver reads.
	ApprovalQuestion = wire.ApprovalDetails
	// ApprovalAnswer is the answer of a person.
	ApprovalAnswer = wire.ApprovalAnswer
	// ApprovalAnswered reports the effect of an answer.
	ApprovalAnswered = wire.AnsweredApproval
	// ApprovalNewLink asks for a link by which a person can answer without a token.
	ApprovalNewLink = wire.LinkRequest
	// ApprovalLink is such a link.
	ApprovalLink = wire.ApprovalLink
)

// ApprovalQuery picks approvals.
type ApprovalQuery = client.ApprovalQuery

// Approvals lists the approvals that tasks wait for.
func (e *approvalCalls) Approvals(ctx context.Context, q ApprovalQuery) (*Page[Approval], error) {
	return withTypedError(e.client.Approvals(ctx, q))
}

// Approval reads one approval, with the facts that the approver needs to decide.
func (e *approvalCalls) Approval(ctx context.Context, id string) (*ApprovalQuestion, error) {
	return withTypedError(e.client.Approval(ctx, id))
}

// AnswerApproval answers an approval. If it was answered before, the earlier answer counts and is
// returned.
func (e *approvalCalls) AnswerApproval(ctx context.Context, id string, a ApprovalAnswer) (*ApprovalAnswered, error) {
	return withTypedError(e.client.AnswerApproval(ctx, id, a))
}

// LinkApproval creates a link by which a person without a token can answer an approval.
func (e *approvalCalls) LinkApproval(ctx context.Context, id string, l ApprovalNewLink) (*ApprovalLink, error) {
	return withTypedError(e.client.LinkApproval(ctx, id, l))
}
