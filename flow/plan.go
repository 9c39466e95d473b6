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
	Window    int // attempts of one step in flight at once, at most
	Profile   Profile
	Closing   *PlanScope // the nodes that compensate, and Finally; nil when there are none
	Finally   string     // its key there; "" = none

	Keys *Keys // what a task asks for before its first node; nil = nothing

	FlowID, FlowSlug string // of the flow that this is a version of; "" where nobody knows
}

// PlanScope is the compiled form of one scope: its nodes, and the one at which it begins.
type PlanScope struct {
	Start string
	Nodes map[string]*PlanNode
	Flat  bool // the body of a subflow: keys of prep are flat, and the child's params win over the task's
	Dag   *Dag // nil in graph mode

	// Pocketflow reports whether a scope of graph mode keeps PocketFlow's own behaviour where it is
	// less strict than ours: the version has that profile.
	Pocketflow bool

	Result string // graph mode: the key of shared that is its value; "" = all of shared

	Inputs *types.Inputs // what the task, or the subflow, takes; nil = anything

	contents Contents // of references; nil = there are none
}

// Kind says which arrangement of the six mechanisms a node is.
type Kind string

// The kinds of graph mode.
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

// The kinds that only dag mode has. Gates, conds, preps and joins are made by the compiler.
const (
	KindFanout Kind = "fanout"
	KindBranch Kind = "branch"
	KindOutput Kind = "output"
	KindGate   Kind = "gate" // decides whether a branch runs
	KindCond   Kind = "cond" // asks a handler whether to skip
	KindPrep   Kind = "prep" // makes the input of a branch or the items of a fanout
	KindJoin   Kind = "join" // the value of a branch
)

// PlanNode is a compiled node.
type PlanNode struct {
	Key    string
	Name   string // what it is called where that is not its key; ""
	Kind   Kind
	Exec   Exec            // executor, and the default of units
	Params json.RawMessage // object, or nil
	Prep   PlanPrep
	Post   Post
	Retry  Retry
	// TimeoutMS bounds each attempt, and the whole step of a subflow. 0 = none.
	TimeoutMS int64
	Edges     map[string]string // action → node; "" ends the scope
	Follow    bool              // on_error: follow, of the node or the flow: after a failure it takes the edges of a success
	Strategy  Strategy
	Each      *Each       // parallel, foreach
	Cases     []PlanCase  // choice
	Default   string      // choice: default_action
	Coerce    bool        // choice: its cases take what is missing for null
	Sub       *PlanScope  // subflow; nil when its start is empty
	Single    bool        // it has one unit, and ends with it
	Undo      string      // the key of the node in Plan.Closing that compensates this one; "" = none
	Dag       *PlanDag    // nil in graph mode
	Keys      *Keys       // what its attempts ask for before they begin; nil = nothing
	Out       *types.Form // what its attempts have to put out; nil = anything
	Deferred  bool        // an output that names jobs outside means that its attempt waits for them; see deferredIn
	Patient   bool        // its timeout does not go on while an attempt waits for them
}

// Called is what people call the node.
func (n *PlanNode) Called() string { return cmp.Or(n.Name, n.Key) }

// Exec says how the jobs of a unit travel and what they ask for.
type Exec struct {
	Type         ExecType
	Service      string
	Func         string
	Script       *Script
	Program      *Program
	Vars         []Var           // of a program's environment, that are filled in when an attempt begins; sorted by name
	Params       json.RawMessage // laid over the step's params; object, or nil
	ByLoad       bool
	MaxAttempts  int // inner tries of local_func and local_script; workers tried for http
	TryDelayMS   int64
	VisibilityMS int64 // 0 = the engine's default
	HeartbeatMS  int64 // how long the holder of a claim may be silent before its attempt has failed; 0 = any time, or as long as files may be silent
	StartMS      int64 // how long the job may wait for somebody to claim it, or to write files about it; 0 = any time, or as usual with files
	FromClaim    bool  // an attempt's timeout counts from its claim
	Labels       []string
}

// ExecType says how a job reaches the one who carries it out.
type ExecType string

// The ways jobs travel. Any other word is refused by the compiler, so a plan never holds one.
const (
	ExecHTTP    ExecType = "http"   // to an attached or push worker
	ExecRemote  ExecType = "remote" // to an attached worker
	ExecQueue   ExecType = "queue"
	ExecFunc    ExecType = "local_func"
	ExecScript  ExecType = "local_script"
	ExecProcess ExecType = "process" // a program that the member starts, by exec
	ExecPython  ExecType = "python"  // a function in a file or module of Python, by exec
	ExecLibrary ExecType = "library" // a function of a shared library that the member calls in a process of its own, by exec
	ExecOutside ExecType = "outside" // begun in another system, which the member knows how to do by the name of the service
	ExecWorker  ExecType = "worker"  // a program that an Ork worker at an address runs, by exec
	ExecDirect  ExecType = "direct"  // nobody carries it out: it is finished through the API

	ExecContainer ExecType = "container" // a program in an image of its own, which the member has a container host run, by exec
)

// Attachable reports whether attached workers may get the jobs.
func (x *Exec) Attachable() bool { return x.Type.Attachable() }

// Attachable reports whether attached workers may get jobs of this type.
func (t ExecType) Attachable() bool { return t == ExecRemote || t == ExecHTTP }

// Started says that the jobs are programs which the member starts: when one begins is stored, and
// one that began and is lost with its member has failed.
func (t ExecType) Started() bool { return t == ExecProcess || t == ExecPython || t == ExecLibrary }

// Adopted says that what is begun for a job goes on without the member that has begun it, and is
// found by whoever is asked to begin it next. So a member that is lost with such a job has not
// ended because of it, and says nothing about it.
func (t ExecType) Adopted() bool { return t == ExecOutside || t == ExecContainer }

// Programmed says that the jobs are programs, whoever starts them.
func (t ExecType) Programmed() bool { return t.Started() || t == ExecWorker || t == ExecContainer }

// Words of route.
const (
	RoutePush   = "push"
	RouteQueue  = "queue"
	RouteDirect = "direct"
)

// Retry is how often, and how far apart, a failed unit or child of a subflow is tried again.
type Retry struct {
	Max         int // tries after the first
	WaitMS      int64
	Exponential bool    // each wait is twice the one before
	MaxWaitMS   int64   // 0 = no bound
	Jitter      float64 // 0 to 1: the part of a wait that is left to chance
	Units       bool    // it is each unit of the step that is tried again
}

// Strategy says what a failed unit or child means for its step.
type Strategy string

// Strategies. Collect runs everything and then fails; Continue makes failures a success; FailFast
// stops at the first one; StrategyRetry belongs to subflow (tries) and wait_event (no timeout).
const (
	Collect       Strategy = ""
	Continue      Strategy = "continue"
	FailFast      Strategy = "fail_fast"
	StrategyRetry Strategy = "retry"
)

// Each is the arrangement of N units: parallel has Branches, foreach has Items.
type Each struct {
	Branches []Branch     // parallel; empty = the strings of params.services at run time
	Items    map[int]Exec // foreach: units carried out differently
	Window   int          // units in flight at once; 0 = all
}

// Branch is one unit of a parallel node.
type Branch struct {
	Name string
	Exec Exec
}

// PlanPrep builds a step's input. Map (when HasMap) wins over Key.
type PlanPrep struct {
	HasMap bool
	Map    []PrepEntry // sorted by key
	Key    string      // the text as written; "" = no input
	Ref    expr.Ref    // of Key, when it begins with $
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
	Text   json.RawMessage // the expression as it was written
	Cond   *expr.Cond
	CEL    *expr.CEL // instead of Cond, when the expression was a text
}

// Post says where a node's output goes and which action it ends with.
type Post struct {
	OutputKey    string            `json:"output_key,omitempty"`    // key of shared that the output is written to
	OutputMap    map[string]string `json:"output_map,omitempty"`    // key of shared to field of the output
	ActionStatic string            `json:"action_static,omitempty"` // the action, whatever the output is
	ActionKey    string            `json:"action_key,omitempty"`    // field of the output that is the action
}

// Script is a program the member starts for a local_script node.
type Script struct {
	Cmd        string            `json:"cmd,omitempty"`         // program to start
	Args       []string          `json:"args,omitempty"`        // its arguments
	Code       string            `json:"code,omitempty"`        // text to run with the language's interpreter
	Language   string            `json:"language,omitempty"`    // of code, such as bash, python or node
	TimeoutMS  int64             `json:"timeout_ms,omitempty"`  // of the program
	Env        map[string]string `json:"env,omitempty"`         // variables of its environment
	WorkDir    string            `json:"work_dir,omitempty"`    // folder it runs in
	StdinMode  string            `json:"stdin_mode,omitempty"`  // json: the input is written to its stdin
	OutputMode string            `json:"output_mode,omitempty"` // json: what it prints is read as JSON
	StderrMode string            `json:"stderr_mode,omitempty"` // log: what it prints to stderr is only logged; else it is output as well
}

// StderrLog is the word of a script's stderr_mode.
const StderrLog = "log"

// Route is how jobs reach whoever carries them out, in the words of dag mode.
func (x *Exec) Route() string {
	switch x.Type {
	case ExecQueue:
		return RouteQueue
	case ExecDirect:
		return RouteDirect
	}
	return RoutePush
}

// QueueServices are the services that jobs of the plan may wait for in the queue, in order. Those
// that a parallel reads from params are not known before it runs.
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
