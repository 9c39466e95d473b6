package flow

import "encoding/json"

// Definition is a flow as people write it, in JSON or YAML. Compile turns it into a Plan.
type Definition struct {
	Name        string           `json:"name,omitempty"`
	Description string           `json:"description,omitempty"`
	Mode        string           `json:"mode,omitempty"`    // graph or dag; "" = dag if there is neither a start nor an edge
	Profile     string           `json:"profile,omitempty"` // of dag mode: ork or pgflow, a bundle of defaults; "" = Troupe's own
	Start       string           `json:"start,omitempty"`
	Nodes       map[string]*Node `json:"nodes"`
	Edges       []Edge           `json:"edges,omitempty"`
	TimeoutMS   int64            `json:"timeout_ms,omitempty"`  // of the whole task; 0 = none
	Timeout     Duration         `json:"timeout,omitzero"`      // the same, another way to write it
	OnError     string           `json:"on_error,omitempty"`    // graph: "fail", a failed node without an `error` edge ends its scope; dag: continue or fail_fast
	Result      string           `json:"result,omitempty"`      // graph: the shared key that is the task's result; "" = all of shared
	Finally     string           `json:"finally,omitempty"`     // the node that runs when everything else is over, whatever happened
	InputShape  string           `json:"input_shape,omitempty"` // dag: what handlers get: run_deps, deps or merged
	Defaults    Defaults         `json:"defaults,omitzero"`     // dag: of its nodes

	// Embedded is the name of the flow this was taken from, when it is a part of another one.
	Embedded string `json:"embedded,omitempty"`

	source *reporter // the text it was read from and the problems of that, or nil
}

// Edge leads from a node to the next one for an action. `default` serves every action that has no
// edge of its own, `error` is taken after a failure.
type Edge struct {
	From   string `json:"from"`
	Action string `json:"action"`
	To     string `json:"to"`
}

// Node is a vertex of a definition. Which fields matter depends on Kind.
type Node struct {
	Kind     string          `json:"kind,omitempty"`
	Service  string          `json:"service,omitempty"`
	ExecType string          `json:"exec_type,omitempty"`
	ExecMode string          `json:"exec_mode,omitempty"` // alias of exec_type when that is empty
	Func     string          `json:"func,omitempty"`
	Script   *Script         `json:"script,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
	Prep     Prep            `json:"prep,omitzero"`
	Post     Post            `json:"post,omitzero"`

	MaxRetries     int   `json:"max_retries,omitempty"`
	WaitMS         int64 `json:"wait_ms,omitempty"`
	MaxAttempts    int   `json:"max_attempts,omitempty"`
	AttemptDelayMS int64 `json:"attempt_delay_ms,omitempty"`
	WeightedByLoad bool  `json:"weighted_by_load,omitempty"`

	TimeoutMS    int64  `json:"timeout_ms,omitempty"`    // of each attempt; of the whole step for a subflow
	VisibilityMS int64  `json:"visibility_ms,omitempty"` // how long a poller may hold a claim without a heartbeat
	OnError      string `json:"on_error,omitempty"`

	ChoiceCases   []ChoiceCase `json:"choice_cases,omitempty"`
	DefaultAction string       `json:"default_action,omitempty"`
	ChoiceKey     string       `json:"choice_key,omitempty"` // accepted and without meaning

	ParallelServices []string   `json:"parallel_services,omitempty"`
	ParallelExecs    []ExecSpec `json:"parallel_execs,omitempty"`
	ParallelMode     string     `json:"parallel_mode,omitempty"`
	MaxParallel      int        `json:"max_parallel,omitempty"`
	FailureStrategy  string     `json:"failure_strategy,omitempty"`

	ForeachExecs []ExecSpec `json:"foreach_execs,omitempty"`

	Subflow      *Subflow   `json:"subflow,omitempty"`
	SubflowExecs []ExecSpec `json:"subflow_execs,omitempty"`

	Flow       *Inner     `json:"flow,omitempty"`       // the flow inside a subflow or branch, of either mode
	Compensate string     `json:"compensate,omitempty"` // the node that undoes this one when the task fails or is canceled
	Retry      *RetrySpec `json:"retry,omitempty"`
	Timeout    Duration   `json:"timeout,omitzero"` // timeout_ms, another way to write it
	Labels     []string   `json:"labels,omitempty"` // that whoever carries out its jobs has to have

	DagNode
	order int // where it was written among its scope's nodes
}

// Prep says what a node's input is made of. A present InputMap wins over InputKey. In dag mode it may
// also be an expression, and for a branch a handler.
type Prep struct {
	InputKey string            `json:"input_key,omitempty"`
	InputMap map[string]string `json:"input_map,omitempty"`
	Expr     string            `json:"expr,omitempty"` // CEL
	Handler
}

// Post says where a node's output goes and which action it ends with.
type Post struct {
	OutputKey    string            `json:"output_key,omitempty"`
	OutputMap    map[string]string `json:"output_map,omitempty"`
	ActionStatic string            `json:"action_static,omitempty"`
	ActionKey    string            `json:"action_key,omitempty"`
}

// ChoiceCase gives Action when Expr is true.
type ChoiceCase struct {
	Action string          `json:"action"`
	Expr   json.RawMessage `json:"expr"`
}

// ExecSpec overrides how one branch, item or child of a node is carried out.
type ExecSpec struct {
	Service  string          `json:"service,omitempty"`
	ExecType string          `json:"exec_type,omitempty"`
	ExecMode string          `json:"exec_mode,omitempty"`
	Func     string          `json:"func,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
	Node     string          `json:"node,omitempty"`
	Index    int             `json:"index,omitempty"`
	Script   *Script         `json:"script,omitempty"`
}

// Script is a program the member starts for a local_script node.
type Script struct {
	Cmd        string            `json:"cmd,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Code       string            `json:"code,omitempty"`
	Language   string            `json:"language,omitempty"`
	TimeoutMS  int64             `json:"timeout_ms,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	WorkDir    string            `json:"work_dir,omitempty"`
	StdinMode  string            `json:"stdin_mode,omitempty"`
	OutputMode string            `json:"output_mode,omitempty"`
}

// Subflow is a flow inside a node, with a shared state of its own.
type Subflow struct {
	Start string           `json:"start"`
	Nodes map[string]*Node `json:"nodes"`
	Edges []Edge           `json:"edges,omitempty"`
}
