package define

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
)

// Definition is a flow as people write it, in JSON or YAML.
type Definition struct {
	Name        string           `json:"name,omitempty"`        // what people call the flow
	Description string           `json:"description,omitempty"` // for people
	Mode        string           `json:"mode,omitempty"`        // graph or dag; "" = dag if there is neither a start nor an edge
	Profile     string           `json:"profile,omitempty"`     // a bundle of defaults: troupe or none for our own; pocketflow of graph mode; ork or pgflow of dag mode
	Start       string           `json:"start,omitempty"`       // graph: the node that a task begins with
	Nodes       map[string]*Node `json:"nodes"`                 // by key; in dag mode those that are ready at once begin in the order written
	Edges       []Edge           `json:"edges,omitempty"`       // graph: which node follows which, for which action
	TimeoutMS   int64            `json:"timeout_ms,omitempty"`  // of the whole task; 0 = none
	Timeout     Duration         `json:"timeout,omitzero"`      // the same, another way to write it
	OnError     string           `json:"on_error,omitempty"`    // graph: what a failed node without an `error` edge does: fail, it ends its scope, or follow, it takes the edge of a success, as in the profile pocketflow; dag: continue or fail_fast
	OnMissing   string           `json:"on_missing,omitempty"`  // graph: what a comparison with something missing does: fail, it fails its step, or coerce, it takes it for null, as in the profile pocketflow
	Result      string           `json:"result,omitempty"`      // graph: the shared key that is the task's result; "" = all of shared
	Finally     string           `json:"finally,omitempty"`     // the node that runs when everything else is over, whatever happened
	InputShape  string           `json:"input_shape,omitempty"` // dag: what handlers get: run_deps, deps or merged
	Inputs      Inputs           `json:"inputs,omitzero"`       // what a task is started with: names and types, or a JSON Schema; nothing = any params
	Defaults    Defaults         `json:"defaults,omitzero"`     // dag: of its nodes
	Schedule    *Schedule        `json:"schedule,omitempty"`    // when its tasks begin by the clock: a cron expression, or an object

	KeyFields

	// Embedded is the name of the flow this was taken from, when it is a part of another one.
	Embedded string `json:"embedded,omitempty"`

	source *Reporter // the text it was read from and the problems of that, or nil
}

// Edge leads from a node to the next one for an action. `default` serves every action that has no
// edge of its own, `error` is taken after a failure.
type Edge struct {
	From   string `json:"from"`   // key of a node
	Action string `json:"action"` // what the node ends with: an action of its own, default for every other one, error after a failure; "" = default, in the profile pocketflow none
	To     string `json:"to"`     // key of the node that follows; "" ends the flow
}

// Node is a vertex of a definition. Which fields matter depends on Kind.
type Node struct {
	Kind     string          `json:"kind,omitempty"`      // what the node does; executor when absent
	Service  string          `json:"service,omitempty"`   // whose workers carry it out
	ExecType string          `json:"exec_type,omitempty"` // how its jobs travel: http to an attached or push worker, remote to an attached one, queue to whoever polls, local_func and local_script on the member, outside to another system
	ExecMode string          `json:"exec_mode,omitempty"` // alias of exec_type when that is empty
	Func     string          `json:"func,omitempty"`      // name of the local function
	Script   *flow.Script    `json:"script,omitempty"`    // program of a local_script
	Exec     *ExecOf         `json:"exec,omitempty"`      // who does the work, in one object: a program of the member; in a dag a service or function, too
	Params   json.RawMessage `json:"params,omitempty"`    // an object that goes along with the input; without it the task's params do
	Prep     Prep            `json:"prep,omitzero"`       // what the input is made of
	Post     flow.Post       `json:"post,omitzero"`       // graph: where the output goes and which action it means

	MaxRetries     int   `json:"max_retries,omitempty"`      // tries after the first of an executor, all tries of a subflow
	WaitMS         int64 `json:"wait_ms,omitempty"`          // between them
	MaxAttempts    int   `json:"max_attempts,omitempty"`     // how many workers are tried within one attempt
	AttemptDelayMS int64 `json:"attempt_delay_ms,omitempty"` // between them
	WeightedByLoad bool  `json:"weighted_by_load,omitempty"` // prefer workers with little load

	TimeoutMS    int64  `json:"timeout_ms,omitempty"`    // of each attempt; of the whole step for a subflow
	VisibilityMS int64  `json:"visibility_ms,omitempty"` // how long a poller may hold a claim without a heartbeat
	OnError      string `json:"on_error,omitempty"`      // graph: on_error of the flow, for this node

	ChoiceCases   []ChoiceCase `json:"choice_cases,omitempty"`   // choice: the first one whose expr is true gives the action
	DefaultAction string       `json:"default_action,omitempty"` // choice: the action when no case is true
	ChoiceKey     string       `json:"choice_key,omitempty"`     // accepted and without meaning

	ParallelServices []string   `json:"parallel_services,omitempty"` // parallel: a branch for each service
	ParallelExecs    []ExecSpec `json:"parallel_execs,omitempty"`    // parallel: a branch for each entry
	ParallelMode     string     `json:"parallel_mode,omitempty"`     // parallel, foreach: one after the other, or at once
	MaxParallel      int        `json:"max_parallel,omitempty"`      // when concurrent: units in flight at once; 0 = all
	FailureStrategy  string     `json:"failure_strategy,omitempty"`  // what a failed unit or child means

	ForeachExecs []ExecSpec `json:"foreach_execs,omitempty"` // foreach: items, by index, that are carried out differently

	Subflow      *Subflow   `json:"subflow,omitempty"`       // a graph inside the node, with a shared state of its own
	SubflowExecs []ExecSpec `json:"subflow_execs,omitempty"` // children of the subflow, by node, that are carried out differently

	Flow       *Inner     `json:"flow,omitempty"`       // the flow inside a subflow or branch, of either mode
	Compensate string     `json:"compensate,omitempty"` // the node that undoes the completed units of this one when the task fails or is canceled
	Retry      *RetrySpec `json:"retry,omitempty"`      // how often and how far apart units are tried
	Timeout    Duration   `json:"timeout,omitzero"`     // timeout_ms, another way to write it
	Labels     []string   `json:"labels,omitempty"`     // that whoever carries out its jobs has to have
	Deferred   bool       `json:"deferred,omitempty"`   // an output {"deferred": [{"service_type": …, "job_id": …}]} means that the attempt waits for these jobs of other systems

	KeyFields
	DagNode
	order      int     // where it was written among its scope's nodes
	noTimeout  bool    // timeout_ms was written, as 0
	servedExec *ExecOf // of whom its program is for others to start
}

// Apart is the node as one of its workers' service, which Started still tells the program of.
func (n *Node) Apart() *Node {
	own := *n
	own.Service, own.Exec, own.servedExec = n.Exec.Service, nil, n.Exec
	return &own
}

// Started says which program is the node's work, whoever starts it; nil = none.
func (n *Node) Started() *ExecOf {
	switch {
	case n.servedExec != nil:
		return n.servedExec
	case n.Exec.Program() != nil:
		return n.Exec
	}
	return nil
}

// NoTimeout says that timeout_ms was written, as 0.
func (n *Node) NoTimeout() bool { return n.noTimeout }

// Prep says what a node's input is made of. A present InputMap wins over InputKey. In dag mode it
// may also be an expression, and for a branch a handler.
type Prep struct {
	InputKey string            `json:"input_key,omitempty"` // a reference such as $params.order or $shared.price; the input is what it means
	InputMap map[string]string `json:"input_map,omitempty"` // field to reference: the input is an object of them
	Expr     string            `json:"expr,omitempty"`      // CEL: the input is what it gives
	Handler
}

// ChoiceCase gives Action when Expr is true.
type ChoiceCase struct {
	Action string          `json:"action"` // what the node ends with then
	Expr   json.RawMessage `json:"expr"`   // an expression in JSON such as {"gt": ["$params.n", 10]}, or a text in CEL
}

// ExecSpec overrides how one branch, item or child of a node is carried out.
type ExecSpec struct {
	Service  string          `json:"service,omitempty"`   // whose workers carry it out
	ExecType string          `json:"exec_type,omitempty"` // how its jobs travel: http to an attached or push worker, remote to an attached one, queue to whoever polls, local_func and local_script on the member, outside to another system
	ExecMode string          `json:"exec_mode,omitempty"` // alias of exec_type when that is empty
	Func     string          `json:"func,omitempty"`      // name of the local function
	Params   json.RawMessage `json:"params,omitempty"`    // an object laid over the node's params
	Node     string          `json:"node,omitempty"`      // subflow_execs: which child
	Index    int             `json:"index,omitempty"`     // foreach_execs: which item, from 0
	Script   *flow.Script    `json:"script,omitempty"`    // program of a local_script
}

// Subflow is a flow inside a node, with a shared state of its own.
type Subflow struct {
	Start string           `json:"start"`           // the node it begins with
	Nodes map[string]*Node `json:"nodes"`           // by key
	Edges []Edge           `json:"edges,omitempty"` // which node follows which, for which action
}

// MaxKey is how many bytes the key of a node may have.
const MaxKey = 256

// Words of on_error in graph mode. With follow, a failed node takes the edges it takes after
// success.
const (
	OnErrorFollow = "follow"
	OnErrorFail   = "fail"
)

// Words of on_missing.
const (
	OnMissingFail   = "fail"
	OnMissingCoerce = "coerce"
)

// Words of on_error in dag mode.
const (
	OnErrorContinue = "continue"
	OnErrorFailFast = "fail_fast"
)

// Words of retry.backoff.
const (
	BackoffFixed       = "fixed"
	BackoffExponential = "exponential"
)
