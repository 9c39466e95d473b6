package definition

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
)

// Definition is a flow as written in JSON or YAML.
type Definition struct {
	Name        string `json:"name,omitempty"`        // display name of the flow
	Description string `json:"description,omitempty"` // description for readers
	// graph, dag or code; "" means code if there is a code, and dag if there is neither a start nor
	// an edge
	Mode string `json:"mode,omitempty"`
	// code: name of the function that is the flow; it is registered by a program with an engine
	// inside
	Code string `json:"code,omitempty"`
	// set of defaults: troupe (or empty) for our own; pocketflow for graphs; ork or pgflow for dags
	Profile string `json:"profile,omitempty"`
	Start   string `json:"start,omitempty"` // graph: node where a task begins
	// by key; in dag mode, nodes that are ready at the same time begin in the written order
	Nodes map[string]*Node `json:"nodes"`
	// graph: which node follows another one for an action
	Edges     []Edge   `json:"edges,omitempty"`
	TimeoutMS int64    `json:"timeout_ms,omitempty"` // of the whole task; 0 = none
	Timeout   Duration `json:"timeout,omitzero"`     // timeout_ms in another notation
	// graph: effect of a failed node without an `error` edge: fail ends its scope, follow takes the
	// edge of a success, as in the profile pocketflow; dag: continue or fail_fast
	OnError string `json:"on_error,omitempty"`
	// graph: result of a comparison with a missing value: fail fails its step, coerce treats it as
	// null, as in the profile pocketflow
	OnMissing string `json:"on_missing,omitempty"`
	// graph: key of shared that is the task's result; "" = all of shared
	Result string `json:"result,omitempty"`
	// node that runs after everything else, however the task ends
	Finally string `json:"finally,omitempty"`
	// dag: form of the input of handlers: run_deps, deps or merged
	InputShape string `json:"input_shape,omitempty"`
	// inputs of a task: names and types, or a JSON Schema; if absent, any params
	Inputs   Inputs   `json:"inputs,omitzero"`
	Defaults Defaults `json:"defaults,omitzero"` // dag: defaults of its nodes
	// when tasks start by the clock: a cron expression, or an object
	Schedule *Schedule `json:"schedule,omitempty"`

	KeyFields

	// Embedded is the name of the published flow from which this was copied, if it is a part of
	// another flow.
	Embedded string `json:"embedded,omitempty"`

	source *Reporter // text of the definition with its problems, or nil
}

// Edge leads from a node to the next one for an action. `default` covers every action without an
// edge of its own, `error` is taken after a failure.
type Edge struct {
	From string `json:"from"` // key of a node
	// action that the node ends with; default for every other one, error after a failure; "" =
	// default, in the profile pocketflow none
	Action string `json:"action"`
	To     string `json:"to"` // key of the next node; "" ends the flow
}

// Node is a node of a definition. The fields that apply depend on Kind.
type Node struct {
	Kind    string `json:"kind,omitempty"`    // kind of the node; executor if absent
	Service string `json:"service,omitempty"` // service whose workers carry it out
	// how its jobs are delivered: push to an attached or push worker, remote to an attached worker,
	// queue to a polling worker, local_func and local_script on the member, external to another
	// system
	ExecType string `json:"exec_type,omitempty"`
	// alias of exec_type, used if that is empty
	ExecMode string       `json:"exec_mode,omitempty"`
	Func     string       `json:"func,omitempty"`   // name of the local function
	Script   *flow.Script `json:"script,omitempty"` // program of a local_script
	// what does the work, in one object: a program of the member; in a dag also a service or
	// function
	Exec *ExecOf `json:"exec,omitempty"`
	// object that is passed in addition to the input; if absent, the task's params are passed
	Params json.RawMessage `json:"params,omitempty"`
	Prep   Prep            `json:"prep,omitzero"` // how the input is made
	// graph: where the output is written and which action it leads to
	Post flow.Post `json:"post,omitzero"`

	// profile pocketflow: retries of an executor, all tries of a subflow
	MaxRetries int `json:"max_retries,omitempty"`
	// profile pocketflow: delay between them
	WaitMS int64 `json:"wait_ms,omitempty"`
	// profile pocketflow: number of tries within one attempt
	MaxAttempts int `json:"max_attempts,omitempty"`
	// profile pocketflow: delay between them
	AttemptDelayMS int64 `json:"attempt_delay_ms,omitempty"`
	// push: maximum number of workers that one attempt calls; 0 = all that are online
	WorkersPerAttempt int      `json:"workers_per_attempt,omitempty"`
	WorkerDelay       Duration `json:"worker_delay,omitzero"`      // delay between these calls
	WeightedByLoad    bool     `json:"weighted_by_load,omitempty"` // prefer workers with low load

	// of each attempt; for a subflow of the whole step
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// how long a poller may hold a claim without a heartbeat
	VisibilityMS int64 `json:"visibility_ms,omitempty"`
	// graph: on_error of the flow for this node alone
	OnError string `json:"on_error,omitempty"`

	// choice: the first case whose expr is true gives the action
	ChoiceCases []ChoiceCase `json:"choice_cases,omitempty"`
	// choice: action if no case is true
	DefaultAction string `json:"default_action,omitempty"`
	ChoiceKey     string `json:"choice_key,omitempty"` // accepted and ignored

	ParallelServices []string   `json:"parallel_services,omitempty"` // parallel: a branch for each service
	ParallelExecs    []ExecSpec `json:"parallel_execs,omitempty"`    // parallel: a branch for each entry
	// parallel, foreach: units run one after the other, or concurrently
	ParallelMode string `json:"parallel_mode,omitempty"`
	// with concurrent: maximum number of units in flight; 0 = all
	MaxParallel int `json:"max_parallel,omitempty"`
	// effect of a failed unit or child
	FailureStrategy string `json:"failure_strategy,omitempty"`

	// foreach: items, by index, that are carried out differently
	ForeachExecs []ExecSpec `json:"foreach_execs,omitempty"`

	// graph inside the node with a shared state of its own
	Subflow *Subflow `json:"subflow,omitempty"`
	// children of the subflow, by node, that are carried out differently
	SubflowExecs []ExecSpec `json:"subflow_execs,omitempty"`

	// nested flow of a subflow or branch, of either mode
	Flow *Inner `json:"flow,omitempty"`
	// node that undoes the completed units of this one when the task fails or is canceled
	Compensate string `json:"compensate,omitempty"`
	// how often and with which delays units are retried
	Retry   *RetrySpec `json:"retry,omitempty"`
	Timeout Duration   `json:"timeout,omitzero"` // timeout_ms in another notation
	Labels  []string   `json:"labels,omitempty"` // labels that a worker must have
	// an output {"deferred": [{"service_type": …, "job_id": …}]} makes the attempt wait for these
	// jobs of other systems
	Deferred bool `json:"deferred,omitempty"`

	KeyFields
	DagNode
	order      int     // position among the nodes of its scope
	noTimeout  bool    // timeout_ms was written as 0
	servedExec *ExecOf // the program, if other components start it
}

// Apart returns a copy of the node that is carried out by workers of its service. Started still
// returns its program.
func (n *Node) Apart() *Node {
	own := *n
	own.Service, own.Exec, own.servedExec = n.Exec.Service, nil, n.Exec
	return &own
}

// Started returns the program that does the node's work, wherever it is started; nil if there is
// none.
func (n *Node) Started() *ExecOf {
	switch {
	case n.servedExec != nil:
		return n.servedExec
	case n.Exec.Program() != nil:
		return n.Exec
	}
	return nil
}

// NoTimeout reports whether timeout_ms was written as 0.
func (n *Node) NoTimeout() bool { return n.noTimeout }

// Prep defines the input of a node. InputMap takes precedence over InputKey. In dag mode an
// expression is possible too, and for a branch a handler.
type Prep struct {
	// reference such as $params.order or $shared.price, whose value is the input
	InputKey string `json:"input_key,omitempty"`
	// from field to reference: the input is an object with these fields
	InputMap map[string]string `json:"input_map,omitempty"`
	// CEL expression whose value is the input
	Expr string `json:"expr,omitempty"`
	Handler
}

// ChoiceCase gives Action when Expr is true.
type ChoiceCase struct {
	Action string `json:"action"` // action that the node ends with
	// expression in JSON such as {"gt": ["$params.n", 10]}, or a text in CEL
	Expr json.RawMessage `json:"expr"`
}

// ExecSpec overrides how one branch, item or child of a node is carried out.
type ExecSpec struct {
	Service string `json:"service,omitempty"` // service whose workers carry it out
	// how its jobs are delivered: push to an attached or push worker, remote to an attached worker,
	// queue to a polling worker, local_func and local_script on the member, external to another
	// system
	ExecType string `json:"exec_type,omitempty"`
	// alias of exec_type, used if that is empty
	ExecMode string          `json:"exec_mode,omitempty"`
	Func     string          `json:"func,omitempty"`   // name of the local function
	Params   json.RawMessage `json:"params,omitempty"` // object merged over the node's params
	Node     string          `json:"node,omitempty"`   // subflow_execs: key of the child
	// foreach_execs: index of the item, from 0
	Index  int          `json:"index,omitempty"`
	Script *flow.Script `json:"script,omitempty"` // program of a local_script
}

// Subflow is a flow inside a node with a shared state of its own.
type Subflow struct {
	Start string           `json:"start"`           // node where it begins
	Nodes map[string]*Node `json:"nodes"`           // by key
	Edges []Edge           `json:"edges,omitempty"` // which node follows another one for an action
}

// MaxKey is the maximum length of a node's key in bytes.
const MaxKey = 256

// Values of on_error in graph mode. With follow, a failed node takes the edges of a success.
const (
	OnErrorFollow = "follow"
	OnErrorFail   = "fail"
)

// Values of on_missing.
const (
	OnMissingFail   = "fail"
	OnMissingCoerce = "coerce"
)

// Values of on_error in dag mode.
const (
	OnErrorContinue = "continue"
	OnErrorFailFast = "fail_fast"
)

// Values of retry.backoff.
const (
	BackoffFixed       = "fixed"
	BackoffExponential = "exponential"
)

// MarshalJSON encodes a definition with its nodes in their order, which encoding/json would sort.
func (d Definition) MarshalJSON() ([]byte, error) {
	type plain Definition
	return json.Marshal(struct {
		*plain
		Nodes orderedNodes `json:"nodes"`
	}{(*plain)(&d), d.Nodes})
}

type orderedNodes map[string]*Node

// MarshalJSON encodes the nodes in their order.
func (nodes orderedNodes) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, key := range InOrder(nodes) {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		node, err := json.Marshal(nodes[key])
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), node...)
	}
	return append(b, '}'), nil
}
