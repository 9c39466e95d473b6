package flow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// Plan is a compiled, immutable definition. Tasks of one version share it.
type Plan struct {
	Root      *PlanScope
	TimeoutMS int64
	Window    int // maximum attempts of one step in flight
	Profile   Profile
	Closing   *PlanScope // compensating nodes and finally; nil if there are none
	Finally   string     // key of the finally node in Closing; "" if none

	Keys *Keys // permits that a task needs before its first node; nil if none

	FlowID, FlowSlug string // the flow of this version; "" if unknown
}

// PlanScope is the compiled form of one scope: its nodes and its start node.
type PlanScope struct {
	Start string
	Nodes map[string]*PlanNode
	Flat  bool // body of a subflow: prep keys are flat, and the child's params override the task's
	Dag   *Dag // nil in the other modes
	Code  bool // code mode: the only node is a function, which requests the steps

	// Pocketflow is set in graph mode for versions with the pocketflow profile. Such a scope keeps
	// the behaviour of PocketFlow where that is less strict.
	Pocketflow bool

	Result string // graph mode: key of shared that is the result; "" for all of shared

	Inputs *types.Inputs // declared inputs of the task or subflow; nil if it accepts any

	contents Contents // resolves references; nil if there are none
}

// Kind is the kind of a node.
type Kind string

// Kinds of graph mode.
const (
	KindExecutor  Kind = "executor"
	KindChoice    Kind = "choice"
	KindParallel  Kind = "parallel"
	KindSubflow   Kind = "subflow"
	KindTimer     Kind = "timer"
	KindForeach   Kind = "foreach"
	KindWaitEvent Kind = "wait_event"
	KindApproval  Kind = "approval"
)

// Kinds of dag mode only. The compiler generates gates, conds, preps and joins.
const (
	KindFanout Kind = "fanout"
	KindBranch Kind = "branch"
	KindOutput Kind = "output"
	KindGate   Kind = "gate" // decides whether a branch runs
	KindCond   Kind = "cond" // calls a handler that decides whether to skip
	KindPrep   Kind = "prep" // builds the input of a branch or the items of a fanout
	KindJoin   Kind = "join" // builds the result of a branch
)

// PlanNode is a compiled node.
type PlanNode struct {
	Key    string
	Name   string // display name if it differs from the key; otherwise ""
	Kind   Kind
	Exec   Exec            // executor, and the default for units
	Params json.RawMessage // object, or nil
	Prep   PlanPrep
	Post   Post
	Retry  Retry
	// TimeoutMS limits each attempt, and for a subflow the whole step. 0 means no limit.
	TimeoutMS int64
	Edges     map[string]string // from action to node; "" ends the scope
	// Follow is on_error: follow, of the node or the flow. After a failure the edges of success are
	// used.
	Follow   bool
	Strategy Strategy
	Each     *Each       // parallel, foreach
	Cases    []PlanCase  // choice
	Default  string      // choice: default_action
	Coerce   bool        // choice: the cases treat missing values as null
	Sub      *PlanScope  // subflow; nil if its start is empty
	Single   bool        // the node has one unit and ends with it
	Undo     string      // key of the compensating node in Plan.Closing; "" if none
	Dag      *PlanDag    // nil in graph mode
	Keys     *Keys       // permits that its attempts need before they begin; nil if none
	Out      *types.Form // type of the attempts' outputs; nil if any
	// Deferred is set if an output that names external jobs makes the attempt wait for them; see
	// deferredIn.
	Deferred bool
	Patient  bool // the timeout stops while an attempt waits for external jobs
}

// Called returns the display name of the node.
func (n *PlanNode) Called() string { return cmp.Or(n.Name, n.Key) }

// Exec defines how the jobs of a unit are delivered, and their requirements.
type Exec struct {
	Type    ExecType
	Service string
	Func    string
	Script  *Script
	Program *Program
	// Vars are environment variables of a program that are filled in when an attempt begins, sorted
	// by name.
	Vars         []Var
	Params       json.RawMessage // merged over the step's params; object, or nil
	ByLoad       bool
	MaxAttempts  int // inner tries of local_func and local_script; number of workers tried for http
	TryDelayMS   int64
	VisibilityMS int64 // 0 for the engine's default
	// HeartbeatMS is the maximum silence of the holder of a claim before its attempt fails. 0 means
	// no limit; a program that reports through files has a default limit.
	HeartbeatMS int64
	// StartMS is the maximum wait of a job for a claim, or for its first files. 0 means no limit; a
	// program that reports through files has a default limit.
	StartMS   int64
	FromClaim bool // the timeout of an attempt counts from its claim
	Labels    []string
}

// ExecType defines how a job reaches its carrier.
type ExecType string

// Values of ExecType. The compiler rejects all others, so a plan never contains one.
const (
	ExecPush    ExecType = "push"   // to an attached worker or a push worker
	ExecRemote  ExecType = "remote" // to an attached worker
	ExecQueue   ExecType = "queue"
	ExecFunc    ExecType = "local_func"
	ExecScript  ExecType = "local_script"
	ExecProcess ExecType = "process" // program that the member starts, from exec
	ExecPython  ExecType = "python"  // function in a Python file or module, from exec
	// ExecLibrary is a function of a shared library, from exec. The member calls it in a separate
	// process.
	ExecLibrary ExecType = "library"
	// ExecExternal is started in another system. The service names the member's connection to that
	// system.
	ExecExternal ExecType = "external"
	ExecWorker   ExecType = "worker" // program that an Ork worker at an address runs, from exec
	ExecDirect   ExecType = "direct" // no carrier: the unit is completed through the API

	// ExecCode is a function that is a flow. It reports its steps while it runs; see CodeStep.
	ExecCode ExecType = "code"

	// ExecContainer is a program with its own image, from exec. The member runs it on a container
	// host.
	ExecContainer ExecType = "container"
)

// Attachable reports whether attached workers may get the jobs.
func (x *Exec) Attachable() bool { return x.Type.Attachable() }

// Attachable reports whether attached workers may get jobs of this type.
func (t ExecType) Attachable() bool { return t == ExecRemote || t == ExecPush }

// Started reports whether the jobs are programs that the member starts. The start of such a program
// is stored. A program that has begun fails when its member is lost.
func (t ExecType) Started() bool { return t == ExecProcess || t == ExecPython || t == ExecLibrary }

// Adopted reports whether the work of a job outlives the member that started it. The next member
// finds the work running when it should start the job. So the loss of a member does not suggest
// that the job killed it.
func (t ExecType) Adopted() bool { return t == ExecExternal || t == ExecContainer }

// Programmed reports whether the jobs are programs, no matter which component starts them.
func (t ExecType) Programmed() bool { return t.Started() || t == ExecWorker || t == ExecContainer }

// Values of route.
const (
	RoutePush   = "push"
	RouteQueue  = "queue"
	RouteDirect = "direct"
)

// Retry defines how often, and with which delays, a failed unit or child of a subflow is retried.
type Retry struct {
	Max         int // number of retries
	WaitMS      int64
	Exponential bool    // each delay is twice the previous one
	MaxWaitMS   int64   // 0 if unlimited
	Jitter      float64 // 0 to 1: the random part of a delay
	Units       bool    // retries each unit of the step, not the step as a whole
}

// Strategy defines the effect of a failed unit or child on its step.
type Strategy string

// Strategies. Collect runs everything and then fails, Continue treats failures as success, and
// FailFast stops at the first failure. StrategyRetry is for subflow (retries) and wait_event (no
// timeout).
const (
	Collect       Strategy = ""
	Continue      Strategy = "continue"
	FailFast      Strategy = "fail_fast"
	StrategyRetry Strategy = "retry"
)

// Each describes a step with N units: parallel has Branches, foreach has Items.
type Each struct {
	Branches []Branch     // parallel; if empty, the strings of params.services at run time
	Items    map[int]Exec // foreach: units with an Exec of their own
	Window   int          // maximum units in flight; 0 for all
}

// Branch is one unit of a parallel node.
type Branch struct {
	Name string
	Exec Exec
}

// PlanPrep builds a step's input. Map takes precedence over Key if HasMap is set.
type PlanPrep struct {
	HasMap bool
	Map    []PrepEntry // sorted by key
	Key    string      // text as written; "" if no input
	Ref    expr.Ref    // parsed Key, if it begins with $
}

// PrepEntry is one entry of an input map.
type PrepEntry struct {
	Key  string
	Text string
	Ref  expr.Ref
}

// PlanCase is a compiled case of a choice.
type PlanCase struct {
	Action string
	Text   json.RawMessage // expression as written
	Cond   *expr.Cond
	CEL    *expr.CEL // used instead of Cond if the expression is a text
}

// Post defines where the output of a node is written and which action the node ends with.
type Post struct {
	OutputKey string `json:"output_key,omitempty"` // key of shared for the output
	// from key of shared to field of the output
	OutputMap    map[string]string `json:"output_map,omitempty"`
	ActionStatic string            `json:"action_static,omitempty"` // fixed action
	// field of the output that contains the action
	ActionKey string `json:"action_key,omitempty"`
}

// Script is a program the member starts for a local_script node.
type Script struct {
	Cmd  string   `json:"cmd,omitempty"`  // program to start
	Args []string `json:"args,omitempty"` // its arguments
	Code string   `json:"code,omitempty"` // text to run with the language's interpreter
	// language of code, such as bash, python or node
	Language  string            `json:"language,omitempty"`
	TimeoutMS int64             `json:"timeout_ms,omitempty"` // timeout of the program
	Env       map[string]string `json:"env,omitempty"`        // environment variables
	WorkDir   string            `json:"work_dir,omitempty"`   // working directory
	StdinMode string            `json:"stdin_mode,omitempty"` // json: the input is written to its stdin
	// json: its stdout is parsed as JSON
	OutputMode string `json:"output_mode,omitempty"`
	// log: its stderr is only logged; otherwise it is part of the output
	StderrMode string `json:"stderr_mode,omitempty"`
}

// StderrLog is a value of Script.StderrMode.
const StderrLog = "log"

// Route returns how jobs reach their carrier, as a value of route in dag mode.
func (x *Exec) Route() string {
	switch x.Type {
	case ExecQueue:
		return RouteQueue
	case ExecDirect:
		return RouteDirect
	}
	return RoutePush
}

// QueueServices returns the services of the plan's queue jobs in sorted order. Services that a
// parallel reads from params at run time are not included.
func (p *Plan) QueueServices() []string {
	all := map[string]bool{}
	p.Root.addServices(all)
	p.Closing.addServices(all)
	return slices.Sorted(maps.Keys(all))
}

func (g *PlanScope) addServices(all map[string]bool) {
	if g == nil {
		return
	}
	for _, n := range g.Nodes {
		n.Exec.addService(all)
		n.Sub.addServices(all)
		if n.Each == nil {
			continue
		}
		for i := range n.Each.Branches {
			n.Each.Branches[i].Exec.addService(all)
		}
		for _, x := range n.Each.Items {
			x.addService(all)
		}
	}
}

func (x *Exec) addService(all map[string]bool) {
	if x.Type == ExecQueue && x.Service != "" {
		all[x.Service] = true
	}
}
