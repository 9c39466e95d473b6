package definition

import "strings"

// NodeField is a field of a node with the kinds of nodes that use it. Validation rejects the field
// at nodes of other kinds, where it would have no effect.
type NodeField struct {
	Name  string // with the containing object, as in post.action_key
	Graph Rule   // in graphs
	Dag   Rule   // in dags
}

// Rule lists the kinds of nodes that use a field. A kind may have a condition under which it uses
// the field, as in branch:graph. Conditions describes them.
type Rule struct {
	Kinds string // separated by spaces; all means every kind of the mode
	Hint  string // suggestion where the field is not used
}

// KindsOfGraph and KindsOfDag list the kinds that rules may name.
var (
	KindsOfGraph = []string{
		"executor", "choice", "parallel", "foreach", "subflow", "timer", "wait_event", "approval",
	}
	KindsOfDag = []string{
		"executor", "fanout", "branch", "timer", "wait_event", "approval", "output",
	}
)

// Conditions maps the conditions of rules to their descriptions in the documentation.
var Conditions = map[string]string{
	"asked":      "with a handler in `when.cond` or `prep`",
	"closing":    "`queue`, as `finally` or `compensate` of a dag",
	"claimed":    "`queue`, or `exec: {report: object_store}`",
	"compared":   "with `input_shape: merged`, and `when.if` or `when.if_not`",
	"concurrent": "with `parallel_mode: concurrent`",
	"dag":        "with a dag inside",
	"counted":    "with `each.count` alone",
	"files":      "with `exec: {report: object_store}`",
	"function":   "`local_func`",
	"graph":      "with a graph inside",
	"handler":    "with a handler",
	"push":       "`push`",
	"inline":     "with `subflow`",
	"inner":      "in the profile `pocketflow`, with `push`, `local_func` or `local_script`",
	"jobs":       "not with `route: direct`",
	"keyed":      "with `concurrency` or `rate`",
	"limited":    "not with `failure_strategy: retry`",
	"mapping":    "without a handler",
	"merged":     "with `input_shape: merged`",
	"patterned":  "with `when.if` or `when.if_not`, without `when.cond`",
	"program":    "with a program",
	"queue":      "`queue`",
	"pocketflow": "in the profile `pocketflow`",
	"repeated":   "in the profile `pocketflow`, with `max_retries`",
	"retried":    "in the profile `pocketflow`, with `failure_strategy: retry`",
	"edged":      "not as `finally` or `compensate`",
	"root":       "outside of subflows, not as `finally` or `compensate`",
	"script":     "`local_script`",
	"unbound":    "without `inputs` and `prep`",
	"undone":     "with `compensate`",
	"unlisted":   "without `parallel_execs`",
	"unmapped":   "without `input_map`",
	"unnamed":    "without `flow`",
	"untyped":    "without `exec_type`",
	"when":       "with `when`",
	"workers":    "`push`, `remote` or `queue`",
}

// Hints for several fields.
const (
	hintJobs    = "it has no jobs of its own: give it to a node that has some"
	hintInside  = "it has no jobs of its own: give it to the nodes inside"
	hintFunc    = "a function is called with exec_type: local_func and without a service"
	hintScript  = "a script is started with exec_type: local_script and without a service"
	hintProgram = "write service or func at a node with jobs, or set exec.type to process, " +
		"python, library, container or worker"
	hintUnit     = "a unit gets its item, with input_shape: merged beside the rest"
	hintSees     = "the nodes that depend on it get its output"
	hintMapped   = "input_map goes first, and a graph inside sees params and its own shared alone"
	hintMaker    = "write a node that makes the input"
	hintPrep     = "only a branch has a handler in prep: a fanout names one in each.items"
	hintOnce     = "it has no attempts to repeat: give it to the nodes that do the work"
	hintPerRetry = "write retry: {max_attempts: …}, which counts the first attempt, too"
	hintPause    = "write retry: {max_attempts: …, delay: …}"
	hintWorkers  = "write retry: {max_attempts: …, delay: …}, or workers_per_attempt with " +
		"exec_type: push"
	hintPush    = "it is about the workers of exec_type: push"
	hintClaims  = "only jobs of a queue are claimed: write exec_type: queue"
	hintLabels  = "no worker carries it out: give it to the nodes inside, or choose workers"
	hintKeys    = "no attempt of it can wait: give it to nodes that have jobs, or to the whole flow"
	hintOrder   = "it orders what waits for a key: write concurrency or rate as well"
	hintChoice  = "write kind: choice"
	hintWhen    = "give the nodes that depend on it a when"
	hintSkip    = "without a condition nothing is skipped: add when, or leave it out"
	hintEach    = "write a node for each branch"
	hintWidth   = "write each: {concurrency: …}"
	hintReports = "it is for jobs of a queue, and for workers that report by an object store: " +
		"set route: queue, or exec: {report: object_store}"
)

// NodeFields is the only table of the fields of nodes. Validation, the JSON schema and the
// documentation derive from it.
var NodeFields = []NodeField{
	{"kind", Rule{"all", ""}, Rule{"all", ""}},
	{"service",
		Rule{"executor foreach", "a parallel names its services in parallel_services, " +
			"other kinds have no jobs of their own"},
		Rule{"executor fanout output", hintInside}},
	{"exec_type",
		Rule{"executor parallel foreach subflow:inline", hintInside},
		Rule{"executor fanout output:handler", hintInside}},
	{"exec_mode",
		Rule{"executor:untyped parallel:untyped foreach:untyped subflow:inline",
			"write exec_type, at a node that has jobs"},
		Rule{"executor:untyped fanout:untyped output:handler",
			"write exec_type, at a node that has jobs"}},
	{"route",
		Rule{"executor parallel foreach subflow:inline", hintInside},
		Rule{"executor fanout output", "only jobs travel: give it to the nodes inside"}},
	{"func",
		Rule{"executor:function parallel:function foreach:function subflow:inline", hintFunc},
		Rule{"executor:function fanout:function output:function", hintFunc}},
	{"script",
		Rule{"executor:script parallel:script foreach:script subflow:inline", hintScript},
		Rule{"executor:script fanout:script output:script", hintScript}},
	{"exec",
		Rule{"executor:program parallel:program foreach:program", hintProgram},
		Rule{"executor fanout output", hintInside}},
	{"params",
		Rule{"all", ""},
		Rule{"executor fanout timer wait_event approval", "give it to the nodes inside, " +
			"or write prep"}},
	{"prep.input_key",
		Rule{"executor:unmapped choice:unmapped parallel:unmapped foreach:unmapped subflow:dag " +
			"subflow:undone timer:unmapped wait_event:unmapped approval:unmapped", hintMapped},
		Rule{"executor:unmapped fanout:counted branch:unmapped output:mapping", hintUnit}},
	{"prep.input_map",
		Rule{"executor choice parallel foreach subflow:dag subflow:undone timer wait_event approval",
			hintMapped},
		Rule{"executor fanout:counted branch output:mapping", hintUnit}},
	{"prep.expr",
		Rule{"", "write input_key or input_map"},
		Rule{"executor fanout:counted branch output:mapping", hintUnit}},
	{"prep.service", Rule{"", hintMaker}, Rule{"branch", hintPrep}},
	{"prep.exec_type", Rule{"", hintMaker}, Rule{"branch", hintPrep}},
	{"prep.func", Rule{"", hintMaker}, Rule{"branch", hintPrep}},
	{"prep.script", Rule{"", hintMaker}, Rule{"branch", hintPrep}},
	{"prep.route", Rule{"", hintMaker}, Rule{"branch", hintPrep}},
	{"post.output_key", Rule{"all", ""}, Rule{"", hintSees}},
	{"post.output_map",
		Rule{"executor", "only an executor has its output taken apart: write output_key"},
		Rule{"", hintSees}},
	{"post.action_static", Rule{"all:edged", ""}, Rule{"", hintSees}},
	{"post.action_key",
		Rule{"executor:edged choice:edged subflow:edged wait_event:edged approval:edged",
			"its output has no such field: write action_static, or a choice behind it"},
		Rule{"", hintSees}},
	{"retry",
		Rule{"executor parallel foreach subflow", hintOnce},
		Rule{"executor:jobs fanout:jobs branch:asked branch:graph output:handler timer:asked " +
			"wait_event:asked approval:asked", hintOnce}},
	{"max_retries",
		Rule{"executor:pocketflow subflow:retried", hintPerRetry}, Rule{"", hintPerRetry}},
	{"wait_ms",
		Rule{"executor:repeated subflow:retried", hintPause}, Rule{"", hintPause}},
	{"max_attempts",
		Rule{"executor:inner parallel:inner foreach:inner", hintWorkers}, Rule{"", hintWorkers}},
	{"attempt_delay_ms",
		Rule{"executor:inner parallel:inner foreach:inner", hintWorkers}, Rule{"", hintWorkers}},
	{"workers_per_attempt",
		Rule{"executor:push parallel:push foreach:push", hintPush},
		Rule{"executor:push fanout:push output:push", hintPush}},
	{"worker_delay",
		Rule{"executor:push parallel:push foreach:push", hintPush},
		Rule{"executor:push fanout:push output:push", hintPush}},
	{"weighted_by_load",
		Rule{"executor:push parallel:push foreach:push", hintPush},
		Rule{"executor:push fanout:push output:push", hintPush}},
	{"visibility_ms",
		Rule{"executor:queue parallel:queue foreach:queue", hintClaims},
		Rule{"executor:queue fanout:queue output:queue", hintClaims}},
	{"labels",
		Rule{"executor:workers parallel:workers foreach:workers", hintLabels},
		Rule{"executor:workers fanout:workers output:workers branch:asked timer:asked " +
			"wait_event:asked approval:asked", hintLabels}},
	{"deferred",
		Rule{"executor parallel foreach", hintJobs},
		Rule{"executor fanout output:handler", hintInside}},
	{"timeout_ms",
		Rule{"executor parallel foreach subflow wait_event:limited approval",
			"it ends by itself, or with failure_strategy: retry never by the clock"},
		Rule{"executor fanout wait_event approval branch:asked branch:graph output:handler " +
			"timer:asked", "nothing in it can be late: give it to the nodes inside"}},
	{"timeout",
		Rule{"executor parallel foreach subflow wait_event:limited approval",
			"it ends by itself, or with failure_strategy: retry never by the clock"},
		Rule{"executor fanout wait_event approval branch:asked branch:graph output:handler " +
			"timer:asked", "nothing in it can be late: give it to the nodes inside"}},
	{"on_error",
		Rule{"all:root", "inside a subflow write an edge for error"},
		Rule{"", "write on_exhausted, or on_error of the flow"}},
	{"compensate",
		Rule{"all", ""},
		Rule{"executor fanout branch timer wait_event approval", "nothing undoes an output"}},
	{"choice_cases", Rule{"choice", hintChoice}, Rule{"", hintWhen}},
	{"default_action", Rule{"choice", hintChoice}, Rule{"", hintWhen}},
	{"choice_key",
		Rule{"", "write choice_cases"},
		Rule{"", hintWhen}},
	{"parallel_services",
		Rule{"parallel:unlisted", "write kind: parallel, without parallel_execs"},
		Rule{"", hintEach}},
	{"parallel_execs", Rule{"parallel", "write kind: parallel"}, Rule{"", hintEach}},
	{"parallel_mode", Rule{"parallel foreach", "it has one unit"}, Rule{"", hintWidth}},
	{"max_parallel",
		Rule{"parallel:concurrent foreach:concurrent", "units run one after the other: " +
			"write parallel_mode: concurrent, at a parallel or foreach"},
		Rule{"", hintWidth}},
	{"failure_strategy",
		Rule{"parallel foreach subflow wait_event", "it has no parts that could fail"},
		Rule{"", "write on_exhausted, or each: {on_error: …}"}},
	{"foreach_execs",
		Rule{"foreach", "write kind: foreach"},
		Rule{"", "its units are carried out alike"}},
	{"subflow",
		Rule{"subflow:unnamed", "write kind: subflow, without flow"},
		Rule{"branch:unnamed", "set kind: branch, without flow"}},
	{"subflow_execs",
		Rule{"subflow:inline", "it is for the nodes of subflow"},
		Rule{"", "write it at the nodes inside"}},
	{"flow",
		Rule{"subflow", "write kind: subflow"},
		Rule{"branch", "only a branch has a flow inside: set kind: branch"}},
	{"concurrency",
		Rule{"executor parallel foreach", hintKeys},
		Rule{"executor:jobs fanout:jobs output:handler", hintKeys}},
	{"rate",
		Rule{"executor parallel foreach", hintKeys},
		Rule{"executor:jobs fanout:jobs output:handler", hintKeys}},
	{"priority",
		Rule{"executor:keyed parallel:keyed foreach:keyed", hintOrder},
		Rule{"executor:keyed fanout:keyed output:keyed", hintOrder}},
	{"depends_on",
		Rule{"", "write edges, or leave out start and edges, which make the flow a graph"},
		Rule{"executor fanout branch timer wait_event approval",
			"an output waits for all leaves: leave it out"}},
	{"run_on",
		Rule{"", "write an edge for error, or finally"},
		Rule{"executor fanout branch timer wait_event approval",
			"an output runs however the leaves end: leave it out"}},
	{"each",
		Rule{"", "write kind: foreach"},
		Rule{"executor fanout", "only an executor has units"}},
	{"when",
		Rule{"", hintChoice},
		Rule{"executor fanout branch timer wait_event approval",
			"an output has no condition"}},
	{"skip_mode",
		Rule{"", hintChoice},
		Rule{"executor:when fanout:when branch:when timer:when wait_event:when approval:when",
			hintSkip}},
	{"whenUnmet",
		Rule{"", hintChoice},
		Rule{"executor:when fanout:when branch:when timer:when wait_event:when approval:when",
			hintSkip}},
	{"on_exhausted",
		Rule{"", "write an edge for error"},
		Rule{"executor fanout branch:graph wait_event approval",
			"nothing of it can fail by itself: leave it out, or give it to the nodes inside"}},
	{"input_shape",
		Rule{"", "write prep"},
		Rule{"executor:unbound fanout:unbound branch:patterned timer:patterned " +
			"wait_event:patterned approval:patterned",
			"inputs or prep make the input, or neither a handler nor a pattern of when gets one"}},
	{"name",
		Rule{"", "a node is called by its key"},
		Rule{"executor fanout branch timer wait_event approval", "an output is called output"}},
	{"output_type",
		Rule{"", "write a choice behind it"},
		Rule{"executor fanout", "only what an executor returns has a type"}},
	{"input",
		Rule{"", "write prep"},
		Rule{"executor:merged fanout:merged branch:compared timer:compared wait_event:compared " +
			"approval:compared", "it is a part of a merged input: set " +
			"input_shape: merged, or write inputs or prep"}},
	{"inputs",
		Rule{"", "write prep"},
		Rule{"executor fanout:counted output:mapping", hintUnit + "; of a branch write prep"}},
	{"delay",
		Rule{"", "write params: {delay_ms: …} of a timer"},
		Rule{"timer", "it is for a timer: units of other nodes wait by start_delay"}},
	{"signal",
		Rule{"", "write params of a wait_event or an approval"},
		Rule{"wait_event approval", "it is for a wait_event or an approval"}},
	{"start_delay",
		Rule{"", "write a node of kind timer"},
		Rule{"executor fanout", "only the units of an executor can begin later"}},
	{"start_timeout",
		Rule{"executor:files executor:closing parallel:files foreach:files",
			"it is for workers that report by an object store: write timeout"},
		Rule{"executor:claimed fanout:claimed output:claimed", hintReports}},
	{"heartbeat_timeout",
		Rule{"executor:files executor:closing parallel:files foreach:files",
			"it is for workers that report by an object store: write visibility_ms"},
		Rule{"executor:claimed fanout:claimed output:claimed", hintReports}},
}

// Rule returns the rule of the field in a mode.
func (f *NodeField) Rule(dag bool) Rule {
	if dag {
		return f.Dag
	}
	return f.Graph
}

// ConditionsOf returns the conditions under which a kind uses the field; "" means always. An empty
// result means that the kind never uses the field.
func (r Rule) ConditionsOf(kind string) (conditions []string) {
	for word := range strings.FieldsSeq(r.Kinds) {
		name, condition, _ := strings.Cut(word, ":")
		if name == kind || name == "all" {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

// Flows that use a field.
const (
	Nowhere    = ""
	Outermost  = "the whole flow"
	Everywhere = "every flow"
)

// FlowField is a field of a flow, with the flows of each mode that use it.
type FlowField struct {
	Name       string
	Graph, Dag string
	Hint       string // suggestion for other flows

	// Vital fields must not be set in a published flow that is embedded in another one. Other
	// fields may be set there without an effect.
	Vital bool
}

// Code returns the flows of code mode that use the field. These flows use the fields that have the
// same meaning in both other modes and do not name nodes.
func (f *FlowField) Code() string {
	if f.Graph != f.Dag || f.Name == "finally" {
		return Nowhere
	}
	return f.Graph
}

// FlowFields is the table of the fields of flows. Fields that every flow uses in both modes are
// omitted.
var FlowFields = []FlowField{
	{"start", Everywhere, Nowhere, "leave it out, or set mode: graph", false},
	{"edges", Everywhere, Nowhere, "write depends_on, or set mode: graph", false},
	{"result", Everywhere, Nowhere, "write a node of kind output", false},
	{"on_missing", Everywhere, Nowhere,
		"a comparison with something missing always fails its node", false},
	{"on_error", Outermost, Everywhere,
		"write an edge for error, or failure_strategy of the node that holds the flow", false},
	{"input_shape", Nowhere, Everywhere, "write prep of each node", false},
	{"defaults", Nowhere, Everywhere, "write it at each node", false},
	{"timeout_ms", Outermost, Outermost, "write timeout_ms of the node that holds the flow", false},
	{"timeout", Outermost, Outermost, "write timeout of the node that holds the flow", false},
	{"schedule", Outermost, Outermost, "only the whole flow is started by the clock", false},
	{"finally", Outermost, Outermost, "write it in the whole flow", true},
	{"concurrency", Outermost, Outermost, "give it to the nodes inside", true},
	{"rate", Outermost, Outermost, "give it to the nodes inside", true},
	{"priority", Outermost, Outermost, "give it to the nodes inside", true},
}

// OverrideField is a field of an override: an entry that defines how a branch, an item or a child
// is carried out. Lists contains the lists whose entries use it.
type OverrideField struct {
	Name  string
	Lists string // separated by spaces
	Hint  string
}

// Lists of overrides.
const (
	ParallelExecs = "parallel_execs"
	ForeachExecs  = "foreach_execs"
	SubflowExecs  = "subflow_execs"
)

// OverrideFields is the table of the fields of overrides.
var OverrideFields = []OverrideField{
	{"service", ParallelExecs + " " + SubflowExecs, "the service of an item is that of the node"},
	{"exec_type", ParallelExecs + " " + ForeachExecs + " " + SubflowExecs, ""},
	{"exec_mode", ParallelExecs + " " + ForeachExecs + " " + SubflowExecs, ""},
	{"func", ParallelExecs + " " + ForeachExecs + " " + SubflowExecs, ""},
	{"params", ParallelExecs + " " + ForeachExecs + " " + SubflowExecs, ""},
	{"node", SubflowExecs, "it is for subflow_execs"},
	{"index", ForeachExecs, "it is for foreach_execs"},
	{"script", ParallelExecs + " " + ForeachExecs + " " + SubflowExecs, ""},
}

// ObeyedIn reports whether entries of a list use the field.
func (f *OverrideField) ObeyedIn(list string) bool {
	for name := range strings.FieldsSeq(f.Lists) {
		if name == list {
			return true
		}
	}
	return false
}
