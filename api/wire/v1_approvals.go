package wire

import "encoding/json"

// Approval is a decision that a task asks a person for.
type Approval struct {
	ID      string `json:"id"`
	Task    string `json:"task"`
	Flow    string `json:"flow" doc:"slug, or id where it has none"`
	Scope   string `json:"scope,omitempty" doc:"absent = the task's root, else a path such as order#1/ship#2"`
	Node    string `json:"node"`
	Visit   int    `json:"visit"`
	Key     string `json:"key" doc:"of shared, which the answer sets"`
	Title   string `json:"title,omitempty" doc:"what is asked, in a line"`
	State   string `json:"state" enum:"open,answered,over" doc:"over: nobody decided, because its time ran out, or the task ended or went another way"`
	Since   Time   `json:"since"`
	Until   Time   `json:"until,omitzero" doc:"absent = it waits without end, or its task is paused, while which its time stands still"`
	EndedAt Time   `json:"ended_at,omitzero"`
	By      string `json:"by,omitempty" doc:"who answered"`
	Comment string `json:"comment,omitempty"`
	Action  string `json:"action,omitempty" doc:"that it was answered with; absent when it was a value that is none"`
}

// Question is an Approval with everything needed to decide it. If it is no longer open, only the
// Approval is set.
type Question struct {
	Approval
	Text      string          `json:"text,omitempty" doc:"plain text"`
	Form      json.RawMessage `json:"form,omitempty" doc:"JSON Schema of the value that answers it; absent = it is answered by an action, or by any value"`
	Show      []ShownValue    `json:"show,omitempty" nullable:"false"`
	Assignees []string        `json:"assignees,omitempty" nullable:"false" doc:"who is meant to decide; anybody may"`
	Actions   []string        `json:"actions,omitempty" nullable:"false" doc:"that may answer it"`
	Name      string          `json:"name,omitempty" doc:"who answers, as the link says by which this was read"`
}

// ShownValue is a value of the task that is shown to the person deciding.
type ShownValue struct {
	Name  string          `json:"name"`
	Ref   string          `json:"ref" example:"$shared.order"`
	Value json.RawMessage `json:"value"`
}

// Answer is an answer to an approval: an action or a value.
type Answer struct {
	Action  string          `json:"action,omitempty" maxLength:"256" doc:"approved, rejected, or another one that an edge of the node has" example:"approved"`
	Value   json.RawMessage `json:"value,omitempty" doc:"in place of an action: what fits the form, or any JSON"`
	Comment string          `json:"comment,omitempty" maxLength:"2000"`
	By      string          `json:"by,omitempty" maxLength:"256" doc:"who answers, for the task's history: nobody checks it; a link says it itself" example:"ada"`
}

// Answered is the result of answering an approval.
type Answered struct {
	Approval
	Counts bool `json:"counts" doc:"false: somebody else answered before, as by and ended_at tell"`
}

// NewLink is a request for a link with which a person can answer one approval.
type NewLink struct {
	Name      string `json:"name" minLength:"1" maxLength:"256" doc:"who is to answer; what is answered by the link is kept with that name"`
	ExpiresIn int64  `json:"expires_in,omitempty" minimum:"0" maximum:"7776000" doc:"seconds; 0 = a day; at most 90 days"`
}

// Link is a link with which a person can answer one approval, and do nothing else.
type Link struct {
	Path      string `json:"path" doc:"behind the address of any member, or of what stands before them" example:"/ui/approve/task-1.1.Cmdv#…"`
	Token     string `json:"token" doc:"what stands behind the # of the path"`
	ExpiresAt Time   `json:"expires_at"`
}
