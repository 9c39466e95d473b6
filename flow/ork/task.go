package ork

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
)

// task is a task as it was written.
type task struct {
	part
	index     int // in the order written
	name, key string
	executor  string
	deps      []*task
	command   json.RawMessage // a text or a list of texts
	file      string
	module    string
	function  string
	url       string // of a worker
	job       string // of Cloud Run

	always          bool
	timeout, delay  *float64
	retries         *int
	exponential     bool
	static          json.RawMessage // of a merged input
	bindings        []binding
	parallel        json.RawMessage // a number, or nil
	count, items    *reference      // parallel and foreach
	concurrency     *int
	inType, outType *typ
	unchecked       bool // what it puts out is not compared with its type
	variables       []expr.Member
	secrets         []secret
	resources       json.RawMessage // what it may use at most; nil = nothing is said
	report          string          // who says how it is; "" = its exit
	start, silence  *float64        // how long its worker may take to begin, and be silent, in seconds
	as              *workerOf       // nil = no worker is named
	image           execFields      // nil = it has no image of its own
	model           *model          // nil = it is no model of dbt
	dir             string          // it runs in, below the root
	custom          execFields      // variables that tell a class of Python what it is to do; nil = it is none
	options         execFields      // how its program is run
}

func (t *task) names() []string {
	names := []string{}
	for _, d := range t.deps {
		names = append(names, d.name)
	}
	return names
}

var taskFields = []string{"executor", "file", "command", "module", "function", "job", "image", "config_file", "config", "worker", "input", "inputs",
	"input_type", "output_type", "output", "validate_output", "depends_on", "on_failure", "timeout", "retries", "retry_delay", "retry", "parallel",
	"foreach", "concurrency", "resources", "env", "secrets", "exec", "start_timeout", "heartbeat_timeout", "output_mode", "upstream_env", "grace"}

func (r *reader) readTasks(p part) {
	all, has := p.below("tasks")
	members, _ := expr.Members(all.raw)
	_, written := p.get("tasks")
	_, imports := p.get("import")
	if failed := imports && r.problems().Err() != nil; len(members) == 0 && len(r.models) == 0 && (has || !written) && !failed {
		r.Errorf(define.At("tasks"), "workflow must contain at least one task")
	}
	r.byName = map[string]*task{}
	keys := keys{}
	for _, m := range members {
		switch at := all.at.Key(m.Key); {
		case m.Key == "":
			r.Errorf(at, "task name cannot be empty")
		case expr.KindOf(m.Value) != expr.KindObject:
			r.Errorf(at, "must be an object such as {executor: process, command: …}, is %s", expr.KindOf(m.Value))
		default:
			r.add(&task{part: part{r, at, m.Value}, name: m.Key}, keys)
		}
	}
	for _, m := range r.models {
		if r.byName[m.task] == nil {
			r.add(&task{part: part{r, m.at, json.RawMessage("{}")}, name: m.task}, keys)
		}
	}
	for _, t := range r.tasks {
		t.read()
	}
}

// add adds a task, behind those that are there.
func (r *reader) add(t *task, keys keys) {
	if len(t.name) > MaxName {
		r.Errorf(t.at, "the task name %.40q… is longer than %d bytes", t.name, MaxName)
		return
	}
	another := ""
	if t.key, another = keys.next(t.name); another != "" {
		r.Warnf(t.at, "its node gets the key %s, because the name is too much like %s", t.key, another)
	}
	t.index, t.model = len(r.tasks), r.byModel[t.name]
	r.tasks = append(r.tasks, t)
	r.byName[t.name] = t
}

// read reads the fields that say nothing of other tasks.
func (t *task) read() {
	t.known(taskFields...)
	t.readExecutor()
	t.timeout, t.delay, t.retries = t.seconds("timeout"), t.seconds("retry_delay"), t.part.count("retries", 0)
	t.readWorkerConfig()
	t.retry()
	t.concurrency = t.part.count("concurrency", 1)
	switch word := t.text("on_failure"); word {
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
	if v, has := t.get("input"); has && expr.KindOf(v) != expr.KindString { // a text is a type
		if t.static, _ = t.want("input", expr.KindObject); t.image != nil {
			t.static = withoutFile(t.static)
		}
	}
	for _, name := range []string{"resources", "config", "config_file"} {
		if _, has := t.get(name); has && !t.hears(name) {
			t.Errorf(t.at.Key(name), "is not carried out by this server: leave it out")
		}
	}
}

// readReport reads who says how the task is, and for how long nobody may.
func (t *task) readReport() {
	p, has := t.below("exec")
	if has {
		p.known("report")
	}
	t.report, t.start, t.silence = p.text("report"), t.seconds("start_timeout"), t.seconds("heartbeat_timeout")
	switch t.report {
	case "", flow.ReportExit, flow.ObjectStore:
	default:
		t.Errorf(p.at.Key("report"), "unknown word %.80q: write %s or %s", t.report, flow.ReportExit, flow.ObjectStore)
	}
	if t.report != flow.ObjectStore && (t.start != nil || t.silence != nil) {
		t.Errorf(t.at, "start_timeout and heartbeat_timeout are for tasks with exec: {report: %s}", flow.ObjectStore)
	}
}

// retry reads how far apart tries are: a fixed time, or 1, 2, 4 … up to 60 seconds.
func (t *task) retry() {
	p, has := t.below("retry")
	if !has {
		return
	}
	p.known("backoff")
	switch word := p.text("backoff"); word {
	case "", "fixed":
	case "exponential":
		t.exponential = true
	default:
		t.Errorf(p.at.Key("backoff"), "unknown word %.80q: write fixed or exponential", word)
	}
}

// Executors by what they are called in files, and by what we call them.
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

// canonical is an executor by the one of its names that we use.
func canonical(word string) string {
	switch word {
	case "shell":
		return process
	case "cloud_run":
		return cloudRun
	}
	return word
}

func (t *task) readExecutor() {
	t.file, t.module, t.function = t.text("file"), t.text("module"), t.text("function")
	t.command, _ = t.get("command")
	called := t.text("executor")
	t.executor = canonical(called)
	named := t.settings.executors[called]
	if named != nil {
		t.executor = canonical(named.kind)
		t.inherit(named.config)
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

// readKind reads what an executor wants to know. It is called by one of our names, or by one that ork.yaml has given it.
func (t *task) readKind(called string, named *executorOf) {
	switch word := t.executor; word {
	case process:
		t.readCommand()
		t.only(process, "module", "function", "job", "image")
	case python:
		t.readFunction()
		t.only(python, "command", "job", "image")
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
		hint := define.Guess{Word: called, Names: t.executorNames}.String()
		if hint == "" && t.Files == nil {
			hint = "; if " + SettingsFile + " names it, that is not read here"
		}
		t.Errorf(t.at.Key("executor"), "Unknown executor type: %.80s%s", called, hint)
	}
}

// readNone reads a task that names no executor: something else says what it is.
func (t *task) readNone() {
	_, image := t.get("image")
	switch _, written := t.get("executor"); {
	case t.model != nil:
		t.inherit(t.settings.config(dbtRun))
		t.readDbt(dbtRun)
	case image:
		t.readImage()
	case !written && strings.HasPrefix(t.name, "dbt.") && len(t.projects) > 0:
		t.Errorf(t.at, "no imported model is called %s%s", t.name, define.Guess{Word: t.name, Names: t.modelNames})
	case !written:
		t.Errorf(t.at, "executor is missing: write executor: process, executor: python or an image")
	}
}

// executorNames are those that a task may name.
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
	case t.command == nil && t.file == "", t.command != nil && !list && expr.KindOf(t.command) == expr.KindString && strings.TrimSpace(said) == "":
		t.Errorf(t.at, "task %s requires a `command` or `file` path", t.name)
	case list:
		if len(t.texts("command")) == 0 {
			t.Errorf(t.at, "task %s requires a `command` or `file` path", t.name)
		}
	case t.command != nil:
		t.want("command", expr.KindString)
	}
}

// only refuses fields that the executor has no use for.
func (t *task) only(executor string, others ...string) {
	for _, name := range others {
		if _, has := t.get(name); has {
			t.Errorf(t.at.Key(name), "is not for executor: %s", executor)
		}
	}
}
