package ork

import (
	"encoding/json"
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
	image           execFields      // nil = it has no image of its own
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
	if len(members) == 0 {
		if _, written := p.get("tasks"); has || !written {
			r.Errorf(define.At("tasks"), "workflow must contain at least one task")
		}
		return
	}
	r.byName = map[string]*task{}
	keys := keys{}
	for i, m := range members {
		t := &task{part: part{r, all.at.Key(m.Key), m.Value}, index: i, name: m.Key}
		switch {
		case m.Key == "":
			r.Errorf(t.at, "task name cannot be empty")
			continue
		case len(m.Key) > MaxName:
			r.Errorf(t.at, "the task name %.40q… is longer than %d bytes", m.Key, MaxName)
			continue
		case expr.KindOf(m.Value) != expr.KindObject:
			r.Errorf(t.at, "must be an object such as {executor: process, command: …}, is %s", expr.KindOf(m.Value))
			continue
		}
		another := ""
		if t.key, another = keys.next(m.Key); another != "" {
			r.Warnf(t.at, "its node gets the key %s, because the name is too much like %s", t.key, another)
		}
		r.tasks = append(r.tasks, t)
		r.byName[t.name] = t
	}
	for _, t := range r.tasks {
		t.read()
	}
}

// read reads the fields that say nothing of other tasks.
func (t *task) read() {
	t.known(taskFields...)
	t.readExecutor()
	t.timeout, t.delay, t.retries = t.seconds("timeout"), t.seconds("retry_delay"), t.part.count("retries", 0)
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
	for _, name := range []string{"resources", "config", "config_file", "worker"} {
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

var executors = []string{process, python, library, container, worker, cloudRun, kubernetes}

func (t *task) readExecutor() {
	t.executor = t.text("executor")
	t.file, t.module, t.function = t.text("file"), t.text("module"), t.text("function")
	t.command, _ = t.get("command")
	switch word := t.executor; word {
	case process, "shell":
		t.executor = process
		t.readCommand()
		t.only(process, "module", "function", "job", "image")
	case python:
		t.readFunction()
		t.only(python, "command", "job", "image")
	case library:
		t.readLibrary()
	case worker:
		t.readWorker()
	case cloudRun, "cloud_run":
		t.readCloudRun()
	case container:
		t.readImage()
	case kubernetes:
		t.readKubernetes()
	case "":
		if _, has := t.get("image"); has {
			t.readImage()
		} else if _, has := t.get("executor"); !has {
			t.Errorf(t.at, "executor is missing: write executor: process, executor: python or an image")
		}
	default:
		t.Errorf(t.at.Key("executor"), "Unknown executor type: %.80s%s", word, define.Guess{Word: word, Names: func() []string { return executors }})
	}
	if t.file != "" && t.executor != worker && t.Exists != nil && !t.Exists(t.file) {
		t.Errorf(t.at.Key("file"), "task %s file not found at %s", t.name, t.file)
	}
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
