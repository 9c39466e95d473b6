package wire

import "encoding/json"

// Flow is a named definition.
type Flow struct {
	Slug        string `json:"slug,omitempty" doc:"Slug of the flow; absent for flows of other API families, which are addressed by ID."`
	ID          string `json:"id" doc:"ID of the flow."`
	Name        string `json:"name" doc:"Name of the flow."`
	Description string `json:"description,omitempty" doc:"Description of the flow."`
	CreatedAt   Time   `json:"created_at" doc:"Time when the flow was created."`
	Trial       bool   `json:"trial,omitempty" doc:"True if it belongs to a trial: a task of a definition that was not published. Lists do not contain it."`

	Summary *FlowSummary `json:"summary,omitempty" doc:"Summary of the recent tasks, in lists with the parameter with=summary."`

	Inputs json.RawMessage `json:"inputs,omitempty" doc:"Declared inputs of the newest version, as a JSON Schema (2020-12) of an object; absent in lists, and if none are declared."`
}

// FlowSummary is a summary of the recent tasks of a flow.
type FlowSummary struct {
	Since       Time        `json:"since" doc:"Start of the counted time: the last 24 hours, and the part of the hour before."`
	Tasks       TaskStats   `json:"tasks" doc:"Statistics of the tasks."`
	LatestTasks []TaskState `json:"latest_tasks" doc:"The last 20 started tasks, newest first; never null."`
	NextAt      Time        `json:"next_at,omitzero" doc:"Time when a schedule starts the next task; absent if none does."`
}

// TaskState is a task and its state.
type TaskState struct {
	ID        string `json:"id" doc:"ID of the task."`
	State     string `json:"state" enum:"pending,running,canceling,completed,failed,canceled" doc:"State of the task."`
	CreatedAt Time   `json:"created_at" doc:"Time when the task was created."`
}

// Version is one immutable state of a flow.
type Version struct {
	ID        string `json:"id" doc:"ID of the version."`
	Flow      string `json:"flow" doc:"Slug of the flow, or its ID if it has none."`
	Number    int    `json:"number" doc:"Number of the version."`
	Status    string `json:"status" doc:"Status of the version; only a published one can be the newest version." example:"published"`
	Hash      string `json:"hash,omitempty" doc:"Hash of the definition's text."`
	CreatedAt Time   `json:"created_at" doc:"Time when the version was published."`

	Inputs     json.RawMessage `json:"inputs,omitempty" doc:"Declared inputs of its tasks, as a JSON Schema (2020-12) of an object; absent in lists, and if none are declared."`
	Definition json.RawMessage `json:"definition,omitempty" doc:"Definition as a JSON object; only for a request for a single version."`
}

// PublishRequest is the form of a publish request with options. In the other form, the body is the
// definition itself, as JSON or YAML.
type PublishRequest struct {
	Slug       string          `json:"slug,omitempty" pattern:"^[a-z0-9][a-z0-9._-]{0,127}$" doc:"Slug of the flow; the default is derived from the definition's name."`
	Definition json.RawMessage `json:"definition" doc:"Definition: an object, or a text with JSON or YAML."`
	Strict     bool            `json:"strict,omitempty" doc:"True to treat warnings as errors, like the query parameter."`
}

// PublishResult is the answer to a publication.
type PublishResult struct {
	Created  bool                `json:"created" doc:"True if a version was created; false if the newest version has the same content."`
	Flow     Flow                `json:"flow" doc:"The flow."`
	Version  Version             `json:"version" doc:"The version."`
	Warnings []DefinitionProblem `json:"warnings,omitempty" doc:"Warnings about the definition."`
}

// TrialRequest is a request for a task of an unpublished definition.
type TrialRequest struct {
	Definition     json.RawMessage   `json:"definition" doc:"Definition: an object, or a text with JSON or YAML."`
	Slug           string            `json:"slug,omitempty" doc:"Slug of the flow to which the definition may later belong."`
	Strict         bool              `json:"strict,omitempty" doc:"True to treat warnings as errors, like the query parameter."`
	Params         json.RawMessage   `json:"params,omitempty" doc:"Params of the task: a JSON object, or any JSON for a flow of dag mode; absent = {}."`
	Labels         map[string]string `json:"labels,omitempty" maxProperties:"63" nullable:"true" doc:"Labels of the task, in addition to troupe:try."`
	IdempotencyKey string            `json:"idempotency_key,omitempty" maxLength:"200" doc:"Idempotency key: requests with the same key and slug are the same task. It can be sent as the header Idempotency-Key instead."`
}

// TrialResult is the answer to a TrialRequest.
type TrialResult struct {
	ID       string              `json:"id" doc:"ID of the task."`
	Created  bool                `json:"created" doc:"True if the task was started; false if a task with this idempotency key existed already."`
	Flow     string              `json:"flow" doc:"ID of the flow of this trial, which no list contains."`
	Version  int                 `json:"version" doc:"Number of the version."`
	Warnings []DefinitionProblem `json:"warnings,omitempty" doc:"Warnings about the definition."`
}

// DeletedFlow is the answer to the deletion of a flow.
type DeletedFlow struct {
	Flow  string `json:"flow" doc:"Slug of the flow, or its ID if it had none."`
	Tasks int    `json:"tasks" doc:"Number of tasks that were deleted with it."`
}

// Validation reports whether a definition could be published.
type Validation struct {
	Valid    bool                `json:"valid" doc:"True if the definition can be published."`
	Problems []DefinitionProblem `json:"problems" doc:"Errors and warnings in the order of the text; never null."`
	Graph    *Graph              `json:"graph,omitempty" doc:"Graph of the flow, if requested and the definition can be parsed."`
}

// DefinitionProblem is a fault of a definition, with its place.
type DefinitionProblem struct {
	File     string `json:"file,omitempty" doc:"Included file to which path, line and column refer; absent for the definition itself."`
	Path     string `json:"path,omitempty" example:"nodes.a.retry" doc:"Path in the definition."`
	Line     int    `json:"line,omitempty" doc:"Line, from 1."`
	Column   int    `json:"column,omitempty" doc:"Column, from 1."`
	Severity string `json:"severity" enum:"error,warning" doc:"Severity of the problem."`
	Message  string `json:"message" doc:"Description of the problem."`
}
