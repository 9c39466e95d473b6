package main

import (
	"context"
	"encoding/json"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type approvalCmd struct {
	List   approvalListCmd   `cmd:"" help:"List the tasks that wait for somebody's approval, those first that began first."`
	Answer approvalAnswerCmd `cmd:"" help:"Approve or reject what a task waits for."`
}

type approvalListCmd struct {
	remote
	pagingFlags
	Flow string `complete:"flow" help:"Only those of this flow."`
}

func (c *approvalListCmd) Run(ctx context.Context, a *app) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	q := client.TaskQuery{Waits: []string{waitsForApproval}, Sort: "created"}
	if q.Flow, err = flowNamed(ctx, server, c.Flow); err != nil {
		return err
	}
	tasks, err := page(c.pagingFlags, func(p client.Paging) (*wire.Page[wire.TaskSummary], error) {
		q.Paging = p
		return server.Tasks(ctx, q)
	})
	if err != nil {
		return err
	}
	t := table{header: []string{"TASK", "FLOW", "NODE", "KEY", "SINCE", "UNTIL"}, spare: []string{"UNTIL", "KEY"}}
	return printPage(a, c.outputFlag, tasks, t, func(t *wire.TaskSummary) []string {
		if t.Wait == nil {
			return []string{t.ID, t.Flow, "", "", "", ""}
		}
		return []string{t.ID, t.Flow, pathOf(t.Wait), t.Wait.Key, moment(t.Wait.Since), moment(t.Wait.Until)}
	})
}

// waitsForApproval is the word for it.
const waitsForApproval = "approval"

// pathOf is the node that waits, with the step that it is inside.
func pathOf(w *wire.TaskWait) string {
	if w.Scope == "" {
		return w.Node
	}
	return w.Scope + "/" + w.Node
}

type approvalAnswerCmd struct {
	remote
	senderFlag
	Task   string `arg:"" complete:"task" help:"Id of the task, or what it begins with."`
	Answer string `arg:"" enum:"approve,reject" help:"approve or reject."`
	Key    string `help:"Key of the approval, if the task waits for another one than the first that approval list tells."`
	Value  string `placeholder:"JSON" help:"What the task is told instead of true or false: JSON, or else text."`
}

func (c *approvalAnswerCmd) Run(ctx context.Context, a *app) error {
	c.by = c.sender()
	server, err := c.client()
	if err != nil {
		return err
	}
	id, err := taskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	if c.Key == "" {
		if c.Key, err = approvalKey(ctx, server, id); err != nil {
			return err
		}
	}
	value := json.RawMessage("false")
	switch {
	case c.Value != "":
		value = jsonOrText(c.Value)
	case c.Answer == "approve":
		value = json.RawMessage("true")
	}
	task, err := server.Signal(ctx, id, c.Key, value)
	if err != nil {
		return err
	}
	return c.showSummary(a, task)
}

// approvalKey is the key of the approval that a task waits for.
func approvalKey(ctx context.Context, server *client.Client, id string) (string, error) {
	task, err := server.Task(ctx, id)
	if err != nil {
		return "", err
	}
	if task.Wait == nil || task.Wait.For != waitsForApproval {
		return "", usagef("the task %s waits for nobody's approval: troupe task show %s tells what it waits for", id, id)
	}
	return task.Wait.Key, nil
}
