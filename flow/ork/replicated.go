package ork

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/define"
)

// Replicated is the name of the one node that a replicated workflow has; its units are the tasks task_0, task_1 and so on.
const Replicated = "task"

// replicated reads the form that knows no graph: one job that runs several times, at once.
func (r *reader) replicated(p part) *Workflow {
	p.known("name", "description", "job_name", "project", "region", "executor", "task_count")
	r.name = r.workflowName(p)
	job, executor := p.text("job_name"), p.text("executor")
	switch {
	case job == "":
		r.Errorf(define.At("job_name"), "is empty: say which command is to run")
	case executor == process, executor == "shell":
	case executor == "", executor == cloudRun, executor == "cloud_run":
		executor = cloudRun
		r.Warnf(define.At("executor"), inCloud, systems[cloudRun])
	default:
		r.Errorf(define.At("executor"), "Unknown executor type: %.80s", executor)
	}
	three := 3
	cloud, count := p.cloud(), or(p.count("task_count", 1), &three)
	var env, each, node, nodes, o object
	if executor == cloudRun {
		env.say("job_name", job)
		startedBy(&node, cloudRun, cloudRunJob(job, cloud, env.text()))
	} else {
		executor = process
		env.say("job_name", literal(job))
		var exec object
		exec.say("type", process)
		exec.say("command", job)
		exec.say("root", r.Root)
		exec.put("env", env.text())
		node.put("exec", exec.text())
	}
	each.put("count", number(*count))
	node.put("each", each.text())
	node.put("timeout", seconds(0))
	nodes.put(Replicated, node.text())
	o.say("name", r.name)
	o.say("description", p.text("description"))
	o.say("profile", "ork")
	o.put("nodes", nodes.text())
	return &Workflow{Name: r.name, Tasks: []Task{{Replicated, Replicated, executor, []string{}}}, Definition: o.text()}
}

// cloud says where a job of Cloud Run is.
func (p part) cloud() json.RawMessage {
	var o object
	o.say("project", p.text("project"))
	o.say("region", p.text("region"))
	return o.text()
}
