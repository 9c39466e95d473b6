package ork

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// workerSet holds the contents of workers.yaml.
type workerSet struct {
	byName        map[string]*workerOf
	defaultWorker *workerOf // for tasks that name no worker; nil if there is none
}

// workerOf holds the settings and limits of a worker for the tasks that name it.
type workerOf struct {
	textPart
	name         string
	url          string // URL at which the worker is called
	timeout      *float64
	cpu, memory  json.RawMessage
	account      string          // service account of Kubernetes jobs
	warnedFields map[string]bool // fields already reported as not applied
}

func (r *reader) readWorkers(f Beside) {
	if f.Name == "" {
		return
	}
	p := r.openBeside(f)
	p.refuseUnknown("workers", "default")
	all, _ := p.getObject("workers")
	members, _ := expr.Members(all.raw)
	r.workers.byName = map[string]*workerOf{}
	for _, m := range members {
		if kind := expr.KindOf(m.Value); kind != expr.KindObject {
			p.Errorf(all.at.Key(m.Key), "must be an object such as {cpu: 1, memory: 2Gi, timeout: 3600}, is %s", kind)
			continue
		}
		r.workers.byName[m.Key] = readWorkerOf(textPart{p.reader, all.at.Key(m.Key), m.Value}, m.Key)
	}
	if name := p.getText("default"); name != "" {
		if r.workers.defaultWorker = r.workers.byName[name]; r.workers.defaultWorker == nil {
			p.Errorf(definition.At("default"), "there is no worker %.80s%s", name,
				definition.Guess{Word: name, Names: r.workers.workerNames})
		}
	}
}

func readWorkerOf(p textPart, name string) *workerOf {
	p.refuseUnknown("url", "service_account", "vpc_connector", "cpu", "memory", "timeout")
	w := &workerOf{textPart: p, name: name, url: p.getText("url"), timeout: p.getSeconds("timeout"),
		account: p.getText("service_account"), warnedFields: map[string]bool{}}
	p.getText("vpc_connector")
	w.cpu, _ = p.getField("cpu")
	w.memory, _ = p.getField("memory")
	if w.url != "" && !isURL(w.url) {
		p.Errorf(p.at.Key("url"), "says not where the worker is: write an address such as http://127.0.0.1:8081")
	}
	return w
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
}

func (s workerSet) workerNames() []string { return slices.Sorted(maps.Keys(s.byName)) }

// findWorker finds the worker that a task names, or the default one.
func (t *task) findWorker() {
	name := t.getText("worker")
	if t.assignedWorker = t.workers.byName[name]; t.assignedWorker != nil || t.executor == worker && isURL(name) {
		return
	}
	switch at := t.at.Key("worker"); {
	case name == "":
		t.assignedWorker = t.workers.defaultWorker
	case t.workers.byName != nil:
		t.Errorf(at, "there is no worker %.80s in %s%s", name, WorkersFile, definition.Guess{Word: name, Names: t.workers.workerNames})
	case t.executor != cloudRun: // the job's own definition may know it
		t.Errorf(at, "there is no worker %.80s: name it in a %s beside the workflow, with what its tasks may use", name, WorkersFile)
	}
}

// readWorkerConfig takes the settings of the worker that the task lacks. If the task itself names
// the worker, the worker's settings have priority over defaults.
func (t *task) readWorkerConfig() {
	w := t.assignedWorker
	if w == nil {
		return
	}
	if _, named := t.getField("worker"); named {
		t.timeout = firstSet(t.timeout, w.timeout)
	}
	const ofServer = "is not applied to programs of this server: they run as its user, in its network"
	switch t.executor {
	case cloudRun:
		w.warnUnused("is not applied to a job of Cloud Run: where that is defined says it",
			"service_account", "vpc_connector", "cpu", "memory")
	case worker:
		w.warnUnused(
			"is not applied to what a worker of Ork runs: whoever starts that worker says it",
			"service_account", "vpc_connector", "cpu", "memory")
	case kubernetes:
		w.warnUnused("is not applied to a job of Kubernetes: it has the network of its namespace", "vpc_connector")
	case container:
		w.warnUnused(ofServer, "service_account", "vpc_connector")
	default:
		w.warnUnused("is not applied to programs that are no containers", "cpu")
		w.warnUnused(ofServer, "service_account", "vpc_connector")
	}
}

// warnUnused warns once about each of the given fields that is set. why is the text of the warning.
func (w *workerOf) warnUnused(why string, fields ...string) {
	for _, field := range fields {
		if _, has := w.getField(field); has && !w.warnedFields[field] {
			w.warnedFields[field] = true
			w.Warnf(w.at.Key(field), "%s", why)
		}
	}
}

// timeLimit returns the time limit of a task: the limit of the task, of the workflow, or of the
// default worker.
func (t *task) timeLimit() *float64 {
	own := firstSet(t.timeout, t.defaults.timeout)
	if t.assignedWorker == nil {
		return own
	}
	return firstSet(own, t.assignedWorker.timeout)
}

// readLocations reads the locations of images.
func (r *reader) readLocations(f Beside) {
	p := r.openBeside(f)
	p.refuseUnknown("locations")
	list, has := p.getKind("locations", expr.KindArray)
	elements, _ := expr.Elements(list)
	for i, e := range elements {
		one := textPart{p.reader, definition.At("locations").Index(i), e}
		if kind := expr.KindOf(e); kind != expr.KindObject {
			p.Errorf(one.at, "must be an object such as {name: etl, image: registry/etl:latest}, is %s", kind)
			continue
		}
		one.refuseUnknown("name", "image", "refresh")
		for _, field := range []string{"name", "image"} {
			if one.getText(field) == "" {
				one.Errorf(one.at, "has no %s", field)
			}
		}
	}
	if has {
		p.Warnf(definition.At("locations"), "images are not searched for workflows: take the files "+
			"out of the image, and publish them with troupe flow apply")
	}
}
