package ork

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/definition"
)

// Replicated is the key of the only node of a replicated workflow; its units are the tasks task_0,
// task_1 and so on.
const Replicated = "task"

// readReplicated reads the form without a graph: one job with several parallel instances.
func (r *reader) readReplicated(p textPart) *Workflow {
	p.refuseUnknown("name", "description", "job_name", "project", "region", "executor", "task_count")
	r.name = r.workflowName(p)
	job, executor := p.getText("job_name"), p.getText("executor")
	switch {
	case job == "":
		r.Errorf(definition.At("job_name"), "is empty: say which command is to run")
	case executor == process, executor == "shell":
	case executor == "", executor == cloudRun, executor == "cloud_run":
		executor = cloudRun
		r.Warnf(definition.At("executor"), inCloud, systems[cloudRun])
	default:
		r.Errorf(definition.At("executor"), "Unknown executor type: %.80s", executor)
	}
	three := 3
	cloud, count := p.cloudLocation(), firstSet(p.getCount("task_count", 1), &three)
	var env, each, node, nodes, o jsonObject
	if executor == cloudRun {
		env.putText("job_name", job)
		startedBy(&node, cloudRun, cloudRunJob(job, cloud, env.toJSON()))
	} else {
		executor = process
		env.putText("job_name", escapeRefs(job))
		var exec jsonObject
		exec.putText("type", process)
		exec.putText("command", job)
		exec.putText("root", r.Root)
		exec.putField("env", env.toJSON())
		node.putField("exec", exec.toJSON())
	}
	each.putField("count", numberJSON(*count))
	node.putField("each", each.toJSON())
	node.putField("timeout", secondsJSON(0))
	nodes.putField(Replicated, node.toJSON())
	o.putText("name", r.name)
	o.putText("description", p.getText("description"))
	o.putText("profile", "ork")
	o.putField("nodes", nodes.toJSON())
	return &Workflow{Name: r.name, Tasks: []Task{{Replicated, Replicated, executor, []string{}}}, Definition: o.toJSON()}
}

// cloudLocation returns the project and region of a Cloud Run job.
func (p textPart) cloudLocation() json.RawMessage {
	var o jsonObject
	o.putText("project", p.getText("project"))
	o.putText("region", p.getText("region"))
	return o.toJSON()
}
