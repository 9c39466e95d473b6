package ork

import (
	"encoding/json"
	"strings"
)

// readLibrary reads a task that a shared library carries out.
func (t *task) readLibrary() {
	if t.file == "" {
		t.Errorf(t.at, "task %s requires a `file` path", t.name)
	}
	t.only(library, "command", "module", "function", "job", "image")
}

// readWorker reads a task that a worker of Ork carries out. Its files are there, so they are not looked for here.
func (t *task) readWorker() {
	t.url = t.text("worker")
	switch at := t.at.Key("worker"); {
	case t.url == "":
		t.Errorf(t.at, "task %s requires a `worker`: say where it is, such as http://127.0.0.1:8081", t.name)
	case !strings.HasPrefix(t.url, "http://") && !strings.HasPrefix(t.url, "https://"):
		t.Errorf(at, "workers have no names here: say where it is, such as http://127.0.0.1:8081")
	}
	switch {
	case t.module != "" || t.function != "":
		t.readFunction()
		t.only(worker, "command")
	default:
		t.readCommand()
	}
	t.only(worker, "job", "image")
}

// readCloudRun reads a task that is a job of Cloud Run, which not every member can start.
func (t *task) readCloudRun() {
	t.executor = cloudRun
	if t.job = t.text("job"); t.job == "" {
		t.Errorf(t.at, "task %s requires a `job` name", t.name)
	}
	t.Warnf(t.at.Key("executor"), inCloud, systems[cloudRun])
	for _, name := range []string{"resources", "worker"} {
		if _, has := t.get(name); has {
			t.Warnf(t.at.Key(name), "is not applied: what a job of Cloud Run may use, and as whom it runs, is said where the job is defined")
		}
	}
	t.only(cloudRun, "command", "file", "module", "function", "image")
}

const inCloud = "jobs of %s are started by troupe-cloud: attempts fail on a server that is troupe"

// runs says who carries out a node: a program by exec, or a job outside, which a starter of that name begins.
func (t *task) runs(o *object) {
	switch t.executor {
	case cloudRun:
		config, _ := t.get("config")
		startedBy(o, cloudRun, cloudRunJob(t.job, config, t.env()))
	case kubernetes:
		startedBy(o, kubernetes, t.kubernetesJob())
	default:
		o.put("exec", t.exec())
	}
}

// cloudRunJob is what the starter is told.
func cloudRunJob(job string, config, env json.RawMessage) json.RawMessage {
	var exec object
	exec.say("type", cloudRun)
	exec.say("job", job)
	if config != nil {
		exec.put("config", config)
	}
	exec.put("env", env)
	return exec.text()
}

// startedBy has a starter begin a job.
func startedBy(o *object, starter string, exec json.RawMessage) {
	var params object
	params.put("exec", exec)
	o.say("exec_type", "outside")
	o.say("service", starter)
	o.put("params", params.text())
}
