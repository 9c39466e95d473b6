package ork

import (
	"encoding/json"
)

// readLibrary reads a task in a shared library.
func (t *task) readLibrary() {
	if t.file == "" {
		t.Errorf(t.at, "task %s requires a `file` path", t.name)
	}
	t.refuseFields(library, "command", "module", "function", "job", "image")
}

// readWorker reads a task for an Ork worker. The files of the task are at the worker, so they are
// not checked here.
func (t *task) readWorker() {
	t.url = t.getText("worker")
	if t.assignedWorker != nil {
		t.url = t.assignedWorker.url
	}
	switch {
	case t.assignedWorker == nil && t.url == "":
		t.Errorf(t.at, "task %s requires a `worker`: say where it is, such as http://127.0.0.1:8081", t.name)
	case t.url == "":
		t.Errorf(t.at.Key("worker"), "%s does not say where the worker %s is: give it a url "+
			"there, such as http://127.0.0.1:8081", WorkersFile, t.assignedWorker.name)
	}
	switch {
	case t.module != "" || t.function != "":
		t.readFunction()
		t.refuseFields(worker, "command")
	default:
		t.readCommand()
	}
	t.refuseFields(worker, "job", "image")
}

// readCloudRun reads a task that is a Cloud Run job, which not every member can start.
func (t *task) readCloudRun() {
	t.executor = cloudRun
	if t.job = t.getText("job"); t.job == "" {
		t.Errorf(t.at, "task %s requires a `job` name", t.name)
	}
	t.Warnf(t.at.Key("executor"), inCloud, systems[cloudRun])
	for _, name := range []string{"resources", "worker"} {
		if _, has := t.getField(name); has {
			t.Warnf(t.at.Key(name), "is not applied: what a job of Cloud Run may use, and as "+
				"whom it runs, is said where the job is defined")
		}
	}
	t.refuseFields(cloudRun, "command", "file", "module", "function", "image")
}

const inCloud = "jobs of %s are started by troupe-cloud: attempts fail on a server that is troupe"

// writeRunner writes the executor of a node: a program in exec, or an external job and its starter.
func (t *task) writeRunner(o *jsonObject) {
	switch t.executor {
	case cloudRun:
		config, _ := t.getField("config")
		startedBy(o, cloudRun, cloudRunJob(t.job, config, t.writeEnv()))
	case kubernetes:
		startedBy(o, kubernetes, t.kubernetesJob())
	default:
		o.putField("exec", t.writeExec())
	}
}

// cloudRunJob returns the settings for the starter.
func cloudRunJob(job string, config, env json.RawMessage) json.RawMessage {
	var exec jsonObject
	exec.putText("type", cloudRun)
	exec.putText("job", job)
	if config != nil {
		exec.putField("config", config)
	}
	exec.putField("env", env)
	return exec.toJSON()
}

// startedBy sets the fields of a node whose job is started by the given starter.
func startedBy(o *jsonObject, starter string, exec json.RawMessage) {
	var params jsonObject
	params.putField("exec", exec)
	o.putText("exec_type", "external")
	o.putText("service", starter)
	o.putField("params", params.toJSON())
}
