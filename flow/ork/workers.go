package ork

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
)

// workerSet are what workers.yaml says.
type workerSet struct {
	byName   map[string]*workerOf
	standard *workerOf // of tasks that name none; nil = there is none
}

// workerOf is what tasks may use that name a worker.
type workerOf struct {
	part
	name        string
	url         string // of a worker that is called
	timeout     *float64
	cpu, memory json.RawMessage
	account     string          // as whom jobs of Kubernetes run
	told        map[string]bool // fields that are not applied
}

func (r *reader) readWorkers(f Beside) {
	if f.Name == "" {
		return
	}
	p := r.open(f)
	p.known("workers", "default")
	all, _ := p.below("workers")
	members, _ := expr.Members(all.raw)
	r.workers.byName = map[string]*workerOf{}
	for _, m := range members {
		if kind := expr.KindOf(m.Value); kind != expr.KindObject {
			p.Errorf(all.at.Key(m.Key), "must be an object such as {cpu: 1, memory: 2Gi, timeout: 3600}, is %s", kind)
			continue
		}
		r.workers.byName[m.Key] = readWorkerOf(part{p.reader, all.at.Key(m.Key), m.Value}, m.Key)
	}
	if name := p.text("default"); name != "" {
		if r.workers.standard = r.workers.byName[name]; r.workers.standard == nil {
			p.Errorf(define.At("default"), "there is no worker %.80s%s", name, define.Guess{Word: name, Names: r.workers.names})
		}
	}
}

func readWorkerOf(p part, name string) *workerOf {
	p.known("url", "service_account", "vpc_connector", "cpu", "memory", "timeout")
	w := &workerOf{part: p, name: name, url: p.text("url"), timeout: p.seconds("timeout"), account: p.text("service_account"), told: map[string]bool{}}
	p.text("vpc_connector")
	w.cpu, _ = p.get("cpu")
	w.memory, _ = p.get("memory")
	if w.url != "" && !isURL(w.url) {
		p.Errorf(p.at.Key("url"), "says not where the worker is: write an address such as http://127.0.0.1:8081")
	}
	return w
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
}

func (s workerSet) names() []string { return slices.Sorted(maps.Keys(s.byName)) }

// findWorker finds the worker that a task names, or that all have which name none.
func (t *task) findWorker() {
	name := t.text("worker")
	if t.as = t.workers.byName[name]; t.as != nil || t.executor == worker && isURL(name) {
		return
	}
	switch at := t.at.Key("worker"); {
	case name == "":
		t.as = t.workers.standard
	case t.workers.byName != nil:
		t.Errorf(at, "there is no worker %.80s in %s%s", name, WorkersFile, define.Guess{Word: name, Names: t.workers.names})
	case t.executor != cloudRun: // whose job's own definition may know it
		t.Errorf(at, "there is no worker %.80s: name it in a %s beside the workflow, with what its tasks may use", name, WorkersFile)
	}
}

// readWorkerConfig takes over what the worker says and the task does not. A worker that the task itself names is nearer to it than defaults.
func (t *task) readWorkerConfig() {
	w := t.as
	if w == nil {
		return
	}
	if _, named := t.get("worker"); named {
		t.timeout = or(t.timeout, w.timeout)
	}
	const ofServer = "is not applied to programs of this server: they run as its user, in its network"
	switch t.executor {
	case cloudRun:
		w.idle("is not applied to a job of Cloud Run: where that is defined says it", "service_account", "vpc_connector", "cpu", "memory")
	case worker:
		w.idle("is not applied to what a worker of Ork runs: whoever starts that worker says it", "service_account", "vpc_connector", "cpu", "memory")
	case kubernetes:
		w.idle("is not applied to a job of Kubernetes: it has the network of its namespace", "vpc_connector")
	case container:
		w.idle(ofServer, "service_account", "vpc_connector")
	default:
		w.idle("is not applied to programs that are no containers", "cpu")
		w.idle(ofServer, "service_account", "vpc_connector")
	}
}

// idle tells once of each field that it is not applied.
func (w *workerOf) idle(why string, fields ...string) {
	for _, field := range fields {
		if _, has := w.get(field); has && !w.told[field] {
			w.told[field] = true
			w.Warnf(w.at.Key(field), "%s", why)
		}
	}
}

// limit is how long a task may take by its own words, by those of its workflow, or of the worker of all.
func (t *task) limit() *float64 {
	own := or(t.timeout, t.defaults.timeout)
	if t.as == nil {
		return own
	}
	return or(own, t.as.timeout)
}

// readLocations reads which images workflows are in.
func (r *reader) readLocations(f Beside) {
	p := r.open(f)
	p.known("locations")
	list, has := p.want("locations", expr.KindArray)
	elements, _ := expr.Elements(list)
	for i, e := range elements {
		one := part{p.reader, define.At("locations").Index(i), e}
		if kind := expr.KindOf(e); kind != expr.KindObject {
			p.Errorf(one.at, "must be an object such as {name: etl, image: registry/etl:latest}, is %s", kind)
			continue
		}
		one.known("name", "image", "refresh")
		for _, field := range []string{"name", "image"} {
			if one.text(field) == "" {
				one.Errorf(one.at, "has no %s", field)
			}
		}
	}
	if has {
		p.Warnf(define.At("locations"), "images are not searched for workflows: take the files out of the image, and publish them with troupe flow apply")
	}
}
