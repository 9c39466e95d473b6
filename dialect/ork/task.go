package ork

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// task is a task as written.
type task struct {
	textPart
	index     int // position in the file
	name, key string
	executor  string
	deps      []*task
	command   json.RawMessage // a text or a list of texts
	file      string
	module    string
	function  string
	url       string // URL of a worker
	job       string // Cloud Run job

	always          bool
	timeout, delay  *float64
	retries         *int
	exponential     bool
	static          json.RawMessage // static values of a merged input
	bindings        []inputBinding
	parallel        json.RawMessage // a number, or nil
	count, items    *outputRef      // parallel and foreach
	concurrency     *int
	inType, outType *orkType
	unchecked       bool // the output is not checked against its type
	variables       []expr.Member
	secrets         []taskSecret
	resources       json.RawMessage // resource limits of the task; nil if there are none
	report          string          // source of the status of the task; "" for its exit code
	// how many seconds its worker may take to start, and be silent
	startTimeout, heartbeatTimeout *float64
	assignedWorker                 *workerOf  // nil if no worker is named
	image                          execFields // nil if the task has no image of its own
	model                          *dbtModel  // nil if the task is not a dbt model
	dir                            string     // folder below the root where the task runs
	// variables with the settings of a Python class; nil if the executor is not a class
	custom  execFields
	options execFields // settings for running the program of the task
}

func (t *task) depNames() []string {
	names := []string{}
	for _, d := range t.deps {
		names = append(names, d.name)
	}
	return names
}

var taskFields = []string{"executor", "file", "command", "module", "function", "job", "image",
	"config_file", "config", "worker", "input", "inputs",
	"input_type", "output_type", "output", "validate_output", "depends_on", "on_failure", "timeout",
	"retries", "retry_delay", "retry", "parallel",
	"foreach", "concurrency", "resources", "env", "secrets", "exec", "start_timeout",
	"heartbeat_timeout", "output_mode", "upstream_env", "grace"}

func (r *reader) readTasks(p textPart) {
	all, has := p.getObject("tasks")
	members, _ := expr.Members(all.raw)
	_, written := p.getField("tasks")
	_, imports := p.getField("import")
	if failed := imports && r.allProblems().Err() != nil; len(members) == 0 && len(r.models) == 0 && (has || !written) && !failed {
		r.Errorf(definition.At("tasks"), "workflow must contain at least one task")
	}
	r.byName = map[string]*task{}
	keys := nodeKeys{}
	for _, m := range members {
		switch at := all.at.Key(m.Key); {
		case m.Key == "":
			r.Errorf(at, "task name cannot be empty")
		case expr.KindOf(m.Value) != expr.KindObject:
			r.Errorf(at, "must be an object such as {executor: process, command: …}, is %s", expr.KindOf(m.Value))
		default:
			r.addTask(&task{textPart: textPart{r, at, m.Value}, name: m.Key}, keys)
		}
	}
	for _, m := range r.models {
		if r.byName[m.task] == nil {
			r.addTask(&task{textPart: textPart{r, m.at, json.RawMessage("{}")}, name: m.task}, keys)
		}
	}
	for _, t := range r.tasks {
		t.readFields()
	}
}

// addTask adds a task after the others.
func (r *reader) addTask(t *task, keys nodeKeys) {
	if len(t.name) > MaxName {
		r.Errorf(t.at, "the task name %.40q… is longer than %d bytes", t.name, MaxName)
		return
	}
	another := ""
	if t.key, another = keys.addKey(t.name); another != "" {
		r.Warnf(t.at, "its node gets the key %s, because the name is too much like %s", t.key, another)
	}
	t.index, t.model = len(r.tasks), r.byModel[t.name]
	r.tasks = append(r.tasks, t)
	r.byName[t.name] = t
}

// readFields reads the fields that are independent of other tasks.
func (t *task) readFields() {
	t.refuseUnknown(taskFields...)
	t.readExecutor()
	t.timeout, t.delay, t.retries = t.getSeconds("timeout"), t.getSeconds("retry_delay"), t.textPart.getCount("retries", 0)
	t.readWorkerConfig()
	t.readRetry()
	t.concurrency = t.textPart.getCount("concurrency", 1)
	switch word := t.getText("on_failure"); word {
	case "", "skip":
	case "run":
		t.always = true
	default:
		t.Errorf(t.at.Key("on_failure"), "unknown word %.80q: write skip or run", word)
	}
	t.readTypes()
	t.readEnv()
	t.readSecrets()
	t.readResources()
	t.readReport()
	t.readOptions()
	if v, has := t.getField("input"); has && expr.KindOf(v) != expr.KindString { // a text is a type
		if t.static, _ = t.getKind("input", expr.KindObject); t.image != nil {
			t.static = withoutFile(t.static)
		}
	}
	for _, name := range []string{"resources", "config", "config_file"} {
		if _, has := t.getField(name); has && !t.acceptsField(name) {
			t.Errorf(t.at.Key(name), "is not carried out by this server: leave it out")
		}
	}
}

// readReport reads the source of the task's status, and how long it may be silent.
func (t *task) readReport() {
	p, has := t.getObject("exec")
	if has {
		p.refuseUnknown("report")
	}
	t.report, t.startTimeout, t.heartbeatTimeout = p.getText("report"), t.getSeconds("start_timeout"), t.getSeconds("heartbeat_timeout")
	switch t.report {
	case "", flow.ReportExit, flow.ObjectStore:
	default:
		t.Errorf(p.at.Key("report"), "unknown word %.80q: write %s or %s", t.report, flow.ReportExit, flow.ObjectStore)
	}
	if t.report != flow.ObjectStore && (t.startTimeout != nil || t.heartbeatTimeout != nil) {
		t.Errorf(t.at, "start_timeout and heartbeat_timeout are for tasks with exec: {report: %s}", flow.ObjectStore)
	}
}

// readRetry reads the delays between attempts: fixed, or 1, 2, 4 … up to 60 seconds.
func (t *task) readRetry() {
	p, has := t.getObject("retry")
	if !has {
		return
	}
	p.refuseUnknown("backoff")
	switch word := p.getText("backoff"); word {
	case "", "fixed":
	case "exponential":
		t.exponential = true
	default:
		t.Errorf(p.at.Key("backoff"), "unknown word %.80q: write fixed or exponential", word)
	}
}

// Names of executors in files, which definitions also use.
const (
	process   = "process"
	python    = "python"
	library   = "library"
	worker    = "worker"
	cloudRun  = "cloudrun"
	container = "container"

	kubernetes = "kubernetes"
)

var executors = []string{process, python, library, container, worker, cloudRun, kubernetes, dbtRun, dbtTest, dbtSeed, dbtSnapshot}

// canonicalExecutor returns the name of an executor in definitions.
func canonicalExecutor(word string) string {
	switch word {
	case "shell":
		return process
	case "cloud_run":
		return cloudRun
	}
	return word
}

func (t *task) readExecutor() {
	t.file, t.module, t.function = t.getText("file"), t.getText("module"), t.getText("function")
	t.command, _ = t.getField("command")
	called := t.getText("executor")
	t.executor = canonicalExecutor(called)
	named := t.settings.executors[called]
	if named != nil {
		t.executor = canonicalExecutor(named.kind)
		t.inheritConfig(named.config)
	}
	if t.model != nil && t.executor != "" && t.executor != dbtRun {
		t.Errorf(t.at.Key("executor"), "a model is run by %s: leave it out", dbtRun)
		return
	}
	t.findWorker()
	t.readKind(called, named)
	if t.file != "" && t.executor != worker && t.Exists != nil && !t.Exists(t.file) {
		t.Errorf(t.at.Key("file"), "task %s file not found at %s", t.name, t.file)
	}
}

// readKind reads the settings of an executor with a name that definitions or ork.yaml use.
func (t *task) readKind(called string, named *executorOf) {
	switch word := t.executor; word {
	case process:
		t.readCommand()
		t.refuseFields(process, "module", "function", "job", "image")
	case python:
		t.readFunction()
		t.refuseFields(python, "command", "job", "image")
	case library:
		t.readLibrary()
	case worker:
		t.readWorker()
	case cloudRun:
		t.readCloudRun()
	case container:
		t.readImage()
	case dbtRun, dbtTest, dbtSeed, dbtSnapshot:
		t.readDbt(word)
	case kubernetes:
		t.readKubernetes()
	case "":
		t.readNone()
	default:
		if named != nil {
			t.readCustom(called, named)
			return
		}
		hint := definition.Guess{Word: called, Names: t.executorNames}.String()
		if hint == "" && t.Files == nil {
			hint = "; if " + SettingsFile + " names it, that is not read here"
		}
		t.Errorf(t.at.Key("executor"), "Unknown executor type: %.80s%s", called, hint)
	}
}

// readNone reads a task that names no executor. Other fields determine the executor.
func (t *task) readNone() {
	_, image := t.getField("image")
	switch _, written := t.getField("executor"); {
	case t.model != nil:
		t.inheritConfig(t.settings.executorConfig(dbtRun))
		t.readDbt(dbtRun)
	case image:
		t.readImage()
	case !written && strings.HasPrefix(t.name, "dbt.") && len(t.projects) > 0:
		t.Errorf(t.at, "no imported model is called %s%s", t.name, definition.Guess{Word: t.name, Names: t.modelNames})
	case !written:
		t.Errorf(t.at, "executor is missing: write executor: process, executor: python or an image")
	}
}

// executorNames returns the executors that a task may name.
func (r *reader) executorNames() []string {
	return slices.Concat(executors, slices.Sorted(maps.Keys(r.settings.executors)))
}

func (t *task) readFunction() {
	if t.file == "" && t.module == "" {
		t.Errorf(t.at, "task %s requires a `file` path or `module` + `function`", t.name)
	}
}

func (t *task) readCommand() {
	_, list := expr.Elements(t.command)
	said, _ := expr.String(t.command)
	switch {
	case t.command == nil && t.file == "", t.command != nil && !list &&
		expr.KindOf(t.command) == expr.KindString && strings.TrimSpace(said) == "":
		t.Errorf(t.at, "task %s requires a `command` or `file` path", t.name)
	case list:
		if len(t.getTexts("command")) == 0 {
			t.Errorf(t.at, "task %s requires a `command` or `file` path", t.name)
		}
	case t.command != nil:
		t.getKind("command", expr.KindString)
	}
}

// refuseFields reports fields that the executor does not use.
func (t *task) refuseFields(executor string, others ...string) {
	for _, name := range others {
		if _, has := t.getField(name); has {
			t.Errorf(t.at.Key(name), "is not for executor: %s", executor)
		}
	}
}
