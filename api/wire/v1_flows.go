package wire

import "encoding/json"

// Flow is a named definition.
type Flow struct {
	Slug        string `json:"slug,omitempty" doc:"what the flow is addressed by; absent for flows of other API families, which are addressed by id"`
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	CreatedAt   Time   `json:"created_at"`
	Tried       bool   `json:"tried,omitempty" doc:"it is for a task of a definition that was not published: no list has it"`

	Summary *FlowSummary `json:"summary,omitempty" doc:"in lists that are asked for with=summary"`

	Inputs json.RawMessage `json:"inputs,omitempty" doc:"what tasks of the newest version are started with, as a JSON Schema (2020-12) of an object; absent where nothing is declared, and in lists"`
}

// FlowSummary is a summary of the recent tasks of a flow.
type FlowSummary struct {
	Since  Time        `json:"since" doc:"tasks are counted since then: the last 24 hours, and what has passed of the hour before"`
	Tasks  TaskStats   `json:"tasks"`
	Newest []TaskState `json:"newest" doc:"the last 20 tasks that began, the newest first; never null"`
	Next   Time        `json:"next,omitzero" doc:"when a schedule begins a task next; absent when none does"`
}

// TaskState is a task and its state.
type TaskState struct {
	ID        string `json:"id"`
	State     string `json:"state" enum:"pending,running,canceling,completed,failed,canceled"`
	CreatedAt Time   `json:"created_at"`
}

// Version is one immutable state of a flow.
type Version struct {
	ID        string `json:"id"`
	Flow      string `json:"flow" doc:"slug of the flow, or its id when it has none"`
	Number    int    `json:"number"`
	Status    string `json:"status" doc:"only published versions are the newest one" example:"published"`
	Hash      string `json:"hash,omitempty" doc:"of the definition's text"`
	CreatedAt Time   `json:"created_at"`

	Inputs     json.RawMessage `json:"inputs,omitempty" doc:"what its tasks are started with, as a JSON Schema (2020-12) of an object; absent where nothing is declared, and in lists"`
	Definition json.RawMessage `json:"definition,omitempty" doc:"JSON object; only where a single version is asked for"`
}

// Publish is one form of publishing: the definition together with options. In the other form the
// body is the definition itself, as JSON or YAML.
type Publish struct {
	Slug       string          `json:"slug,omitempty" pattern:"^[a-z0-9][a-z0-9._-]{0,127}$" doc:"what the flow is addressed by; else it is made from the definition's name"`
	Definition json.RawMessage `json:"definition" doc:"an object, or a text that holds JSON or YAML"`
	Strict     bool            `json:"strict,omitempty" doc:"true: warnings are errors, too; the same as the query parameter"`
}

// Published is the answer to a publication.
type Published struct {
	Created  bool                `json:"created" doc:"false when the newest version had this very content"`
	Flow     Flow                `json:"flow"`
	Version  Version             `json:"version"`
	Warnings []DefinitionProblem `json:"warnings,omitempty"`
}

// Try is a request for a task of a definition that is not published.
type Try struct {
	Definition     json.RawMessage   `json:"definition" doc:"an object, or a text that holds JSON or YAML"`
	Slug           string            `json:"slug,omitempty" doc:"of the flow that it may once be a version of"`
	Strict         bool              `json:"strict,omitempty" doc:"true: warnings are errors, too; the same as the query parameter"`
	Params         json.RawMessage   `json:"params,omitempty" doc:"JSON object, for a flow of dag mode any JSON; absent = {}"`
	Labels         map[string]string `json:"labels,omitempty" maxProperties:"63" nullable:"true" doc:"marks to find the task by, beside troupe:try"`
	IdempotencyKey string            `json:"idempotency_key,omitempty" maxLength:"200" doc:"the same key for the same slug is the same task; may be sent as the header Idempotency-Key instead"`
}

// Tried is the answer to a Try.
type Tried struct {
	ID       string              `json:"id" doc:"of the task"`
	Created  bool                `json:"created" doc:"false when a task with this idempotency key had been started before"`
	Flow     string              `json:"flow" doc:"id of what the task is of; no list has it"`
	Version  int                 `json:"version"`
	Warnings []DefinitionProblem `json:"warnings,omitempty"`
}

// DeletedFlow is the answer to the deletion of a flow.
type DeletedFlow struct {
	Flow  string `json:"flow" doc:"slug of the flow, or its id when it had none"`
	Tasks int    `json:"tasks" doc:"how many tasks were deleted with it"`
}

// Validation reports whether a definition could be published.
type Validation struct {
	Valid    bool                `json:"valid"`
	Problems []DefinitionProblem `json:"problems" doc:"errors and warnings, in the order of the text; never null"`
	Graph    *Graph              `json:"graph,omitempty" doc:"where it was asked for and the definition can be understood"`
}

// DefinitionProblem is a fault of a definition and its place.
type DefinitionProblem struct {
	File     string `json:"file,omitempty" doc:"another file than that of the definition, which brings it in: path, line and column are in that"`
	Path     string `json:"path,omitempty" example:"nodes.a.max_retries"`
	Line     int    `json:"line,omitempty" doc:"from 1"`
	Column   int    `json:"column,omitempty" doc:"from 1"`
	Severity string `json:"severity" enum:"error,warning"`
	Msg      string `json:"msg"`
}
