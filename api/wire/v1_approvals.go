package wire

import "encoding/json"

// Approval is a decision that a task requests from a person.
type Approval struct {
	ID           string `json:"id" doc:"ID of the approval."`
	Task         string `json:"task" doc:"ID of the task."`
	Flow         string `json:"flow" doc:"Slug of the flow, or its ID if it has none."`
	Scope        string `json:"scope,omitempty" doc:"Path of the scope, such as order#1/ship#2; absent for the task's root."`
	Node         string `json:"node" doc:"Key of the node."`
	Visit        int    `json:"visit" doc:"Number of the visit."`
	Key          string `json:"key" doc:"Key of shared that the answer sets."`
	Title        string `json:"title,omitempty" doc:"Question in one line."`
	State        string `json:"state" enum:"open,answered,ended" doc:"State of the approval. ended: it was not answered, because its deadline passed, or the task ended or took another path."`
	WaitingSince Time   `json:"waiting_since" doc:"Time when the approval was requested."`
	Deadline     Time   `json:"deadline,omitzero" doc:"Time when the approval ends by itself; absent if it has no deadline, or while the task is paused, because the time stands still then."`
	EndedAt      Time   `json:"ended_at,omitzero" doc:"Time when the approval was answered or ended."`
	AnsweredBy   string `json:"answered_by,omitempty" doc:"Name of the person who answered."`
	Comment      string `json:"comment,omitempty" doc:"Comment of the answer."`
	Action       string `json:"action,omitempty" doc:"Action of the answer; absent if it was answered with a value that is no action."`
}

// ApprovalDetails is an Approval with all data needed to decide it. If the approval is not open,
// only Approval is set.
type ApprovalDetails struct {
	Approval
	Text      string          `json:"text,omitempty" doc:"Details of the question, in plain text."`
	Form      json.RawMessage `json:"form,omitempty" doc:"JSON Schema of the answer's value; absent if the answer is an action, or any value."`
	Values    []ApprovalValue `json:"values,omitempty" nullable:"false" doc:"Values of the task to show with the question."`
	Assignees []string        `json:"assignees,omitempty" nullable:"false" doc:"Names of the people who should answer; other people may answer, too."`
	Actions   []string        `json:"actions,omitempty" nullable:"false" doc:"Actions that may be the answer."`
	Name      string          `json:"name,omitempty" doc:"Name in the link with which this was read: the name of the person who answers."`
}

// ApprovalValue is a value of the task that is shown with the approval.
type ApprovalValue struct {
	Name  string          `json:"name" doc:"Label of the value."`
	Ref   string          `json:"ref" example:"$shared.order" doc:"Reference to the value."`
	Value json.RawMessage `json:"value" doc:"Value, as JSON."`
}

// ApprovalAnswer is an answer to an approval: an action or a value.
type ApprovalAnswer struct {
	Action     string          `json:"action,omitempty" maxLength:"256" doc:"approved, rejected, or the action of another edge of the node." example:"approved"`
	Value      json.RawMessage `json:"value,omitempty" doc:"Value instead of an action: it must fit the form if there is one."`
	Comment    string          `json:"comment,omitempty" maxLength:"2000" doc:"Comment on the answer, for the task's history."`
	AnsweredBy string          `json:"answered_by,omitempty" maxLength:"256" doc:"Name of the person who answers, for the task's history. It is not verified. A link has its own name." example:"ada"`
}

// AnsweredApproval is the result of answering an approval.
type AnsweredApproval struct {
	Approval
	Accepted bool `json:"accepted" doc:"True if this answer counts; false if the approval was answered earlier, as answered_by and ended_at show."`
}

// LinkRequest is a request for a link with which a person can answer one approval.
type LinkRequest struct {
	Name        string `json:"name" minLength:"1" maxLength:"256" doc:"Name of the person who is to answer; answers by the link are stored with it."`
	ExpiresInMS int64  `json:"expires_in_ms,omitempty" minimum:"0" maximum:"7776000000" doc:"Lifetime of the link in milliseconds, at most 90 days; 0 = one day."`
}

// ApprovalLink is a link with which a person can only answer one approval.
type ApprovalLink struct {
	Path      string `json:"path" doc:"Path of the link, behind the address of any member or of a proxy." example:"/ui/approve/task-1.1.Cmdv#…"`
	Token     string `json:"token" doc:"Token of the link: the part of the path after #."`
	ExpiresAt Time   `json:"expires_at" doc:"Time when the link expires."`
}
