package ork

import (
	"encoding/json"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// systems are the other systems that run tasks, through a starter that only some members have. The
// starter gets its settings in the params, like workers.
var systems = map[string]string{cloudRun: "Cloud Run", kubernetes: "Kubernetes"}

// isExternalJob reports whether the task is started in another system.
func (t *task) isExternalJob() bool { return systems[t.executor] != "" }

// readKubernetes reads a task that is a Kubernetes job.
func (t *task) readKubernetes() {
	if name := t.getText("image"); strings.TrimSpace(name) == "" {
		t.Errorf(t.at, "task %s requires an `image`", t.name)
	}
	if _, list := expr.Elements(t.command); t.command != nil && list {
		t.getTexts("command")
	} else if t.command != nil {
		t.getKind("command", expr.KindString)
	}
	if t.assignedWorker != nil && t.assignedWorker.account != "" {
		var account jsonObject
		account.putText("service_account", t.assignedWorker.account)
		t.inheritConfig(account.toJSON())
	}
	p, _ := t.getObject("config")
	p.refuseUnknown("namespace", "service_account", "pull")
	for _, name := range []string{"namespace", "service_account"} {
		p.getText(name)
	}
	switch word := p.getText("pull"); word {
	case "", flow.PullMissing, flow.PullAlways, flow.PullNever:
	default:
		p.Errorf(p.at.Key("pull"), "unknown word %.80q: write missing, always or never", word)
	}
	t.Warnf(t.at.Key("executor"), inCloud, systems[kubernetes])
	t.refuseFields(kubernetes, "file", "module", "function", "job")
}

// kubernetesJob returns the settings for the starter.
func (t *task) kubernetesJob() json.RawMessage {
	var exec jsonObject
	exec.putText("type", kubernetes)
	exec.putText("image", t.getText("image"))
	for _, name := range []string{"command", "config"} {
		if v, has := t.getField(name); has {
			exec.putField(name, v)
		}
	}
	if t.resources != nil {
		exec.putField("resources", t.resources)
	}
	exec.putField("env", t.writeEnv())
	return exec.toJSON()
}
