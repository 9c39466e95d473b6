package ork

import (
	"encoding/json"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// systems are those that tasks are begun in, by a starter that not every member has. What it is told is among the params, as it is for workers.
var systems = map[string]string{cloudRun: "Cloud Run", kubernetes: "Kubernetes"}

// outside says that the task is begun in another system.
func (t *task) outside() bool { return systems[t.executor] != "" }

// readKubernetes reads a task that is a job of Kubernetes.
func (t *task) readKubernetes() {
	if name := t.text("image"); strings.TrimSpace(name) == "" {
		t.Errorf(t.at, "task %s requires an `image`", t.name)
	}
	if _, list := expr.Elements(t.command); t.command != nil && list {
		t.texts("command")
	} else if t.command != nil {
		t.want("command", expr.KindString)
	}
	if t.as != nil && t.as.account != "" {
		var account object
		account.say("service_account", t.as.account)
		t.inherit(account.text())
	}
	p, _ := t.below("config")
	p.known("namespace", "service_account", "pull")
	for _, name := range []string{"namespace", "service_account"} {
		p.text(name)
	}
	switch word := p.text("pull"); word {
	case "", flow.PullMissing, flow.PullAlways, flow.PullNever:
	default:
		p.Errorf(p.at.Key("pull"), "unknown word %.80q: write missing, always or never", word)
	}
	t.Warnf(t.at.Key("executor"), inCloud, systems[kubernetes])
	t.only(kubernetes, "file", "module", "function", "job")
}

// kubernetesJob is what the starter is told.
func (t *task) kubernetesJob() json.RawMessage {
	var exec object
	exec.say("type", kubernetes)
	exec.say("image", t.text("image"))
	for _, name := range []string{"command", "config"} {
		if v, has := t.get(name); has {
			exec.put(name, v)
		}
	}
	if t.resources != nil {
		exec.put("resources", t.resources)
	}
	exec.put("env", t.env())
	return exec.text()
}
