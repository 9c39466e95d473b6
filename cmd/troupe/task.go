package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type taskCmd struct {
	Start   taskStartCmd   `cmd:"" help:"Start a task of a flow."`
	List    taskListCmd    `cmd:"" help:"List tasks, newest first."`
	Show    taskShowCmd    `cmd:"" help:"Show a task, and why it is waiting."`
	Watch   taskWatchCmd   `cmd:"" help:"Follow a task until it has ended."`
	Cancel  taskCancelCmd  `cmd:"" help:"End tasks; what they are doing is withdrawn."`
	Pause   taskPauseCmd   `cmd:"" help:"Let nothing new of tasks start."`
	Resume  taskResumeCmd  `cmd:"" help:"Let paused tasks go on."`
	Signal  taskSignalCmd  `cmd:"" help:"Set a key of a task's shared state and wake whoever waits for it."`
	History taskHistoryCmd `cmd:"" help:"Show a task's events, its runs, or what they printed."`
}

type taskStartCmd struct {
	remote
	Flow       string   `arg:"" help:"Slug or id of the flow."`
	Version    int      `help:"Number of the version; 0 = the newest."`
	Params     string   `placeholder:"JSON" help:"Params, a JSON object."`
	ParamsFile string   `placeholder:"FILE" help:"File with the params; - is stdin."`
	Param      []string `short:"p" sep:"none" placeholder:"KEY=VALUE" help:"One of the params; JSON, or else text. May be repeated."`
	Label      []string `sep:"none" placeholder:"NAME=TEXT" help:"Mark the task, to find it again. May be repeated."`
	Key        string   `help:"Idempotency key: the same key for the same flow is the same task."`
	Wait       bool     `help:"Wait for the end; exit with 1 if the task does not complete."`
}

func (c *taskStartCmd) Run(ctx context.Context, a *app) error {
	params, err := c.params(a)
	if err != nil {
		return err
	}
	labels, err := pairs("--label", c.Label)
	if err != nil {
		return err
	}
	server, err := c.client()
	if err != nil {
		return err
	}
	started, err := server.Start(ctx, wire.Start{Flow: c.Flow, Version: c.Version, Params: params, Labels: labels, IdempotencyKey: c.Key})
	switch {
	case err != nil:
		return err
	case c.Wait:
		return c.wait(ctx, a, server, started.ID)
	case c.json():
		return printJSON(a.stdout, started)
	}
	fmt.Fprintln(a.stdout, started.ID)
	return nil
}

// wait shows the task as it has ended.
func (c *taskStartCmd) wait(ctx context.Context, a *app, server *client.Client, id string) error {
	task, err := server.Wait(ctx, id)
	if err != nil {
		return fmt.Errorf("%w\nThe task goes on without us: troupe task watch %s", err, id)
	}
	if c.json() {
		err = printJSON(a.stdout, task)
	} else {
		err = printEnded(a, task)
	}
	if err == nil && task.State != "completed" {
		return errFailed
	}
	return err
}

func printEnded(a *app, t *wire.Task) error {
	return printFields(a.stdout, "Task", t.ID, "State", t.State, "Steps", fmt.Sprint(t.Steps), "Time", took(t.CreatedAt, t.EndedAt),
		"Error", t.Error, "Result", string(t.Result))
}

// params puts together what the flags say; single ones win over an object.
func (c *taskStartCmd) params(a *app) (json.RawMessage, error) {
	text := []byte(c.Params)
	if c.ParamsFile != "" {
		if c.Params != "" {
			return nil, usagef("--params and --params-file are two ways to say the same: choose one")
		}
		var err error
		if text, err = a.read(c.ParamsFile); err != nil {
			return nil, err
		}
	}
	var object map[string]json.RawMessage
	if len(text) > 0 {
		if err := json.Unmarshal(text, &object); err != nil {
			return nil, usagef("params are no JSON object: %v", err)
		}
	}
	if len(c.Param) == 0 {
		return text, nil // as it is, with its order of keys
	}
	single, err := pairs("-p", c.Param)
	if err != nil {
		return nil, err
	}
	if object == nil {
		object = map[string]json.RawMessage{}
	}
	for key, value := range single {
		object[key] = jsonOrText(value)
	}
	return json.Marshal(object)
}

// pairs reads the values of a flag that are written NAME=VALUE.
func pairs(flag string, sent []string) (map[string]string, error) {
	if len(sent) == 0 {
		return nil, nil
	}
	all := map[string]string{}
	for _, pair := range sent {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usagef("%s %q is not NAME=VALUE", flag, pair)
		}
		all[name] = value
	}
	return all, nil
}

// jsonOrText takes what is JSON for what it is, and all else for text.
func jsonOrText(s string) json.RawMessage {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	text, _ := json.Marshal(s) // a string is always marshaled
	return text
}

type taskListCmd struct {
	remote
	Flow  string   `help:"Only those of this flow."`
	State []string `help:"Only those in this state: pending, running, completed, failed, canceling, canceled, or paused. May be repeated."`
	Label []string `sep:"none" placeholder:"NAME=TEXT" help:"Only those with this label. May be repeated."`
	Since string   `placeholder:"WHEN" help:"Only those started since: 90m, 36h, 2026-01-31 or a time as in RFC 3339."`
	Limit int      `default:"50" help:"How many at most (${default}); 0 = all."`
}

func (c *taskListCmd) Run(ctx context.Context, a *app) error {
	filter := client.TaskQuery{Flow: c.Flow, States: c.State}
	var err error
	if filter.Labels, err = pairs("--label", c.Label); err != nil {
		return err
	}
	if filter.CreatedFrom, err = since(c.Since, time.Now()); err != nil {
		return err
	}
	server, err := c.client()
	if err != nil {
		return err
	}
	tasks, err := gather(c.Limit, func(p client.Paging) (*wire.Page[wire.TaskSummary], error) {
		filter.Paging = p
		return server.Tasks(ctx, filter)
	})
	if err != nil {
		return err
	}
	if c.json() {
		return printJSON(a.stdout, tasks)
	}
	var rows [][]string
	for _, t := range tasks {
		rows = append(rows, []string{t.ID, t.Flow, stateOf(&t), fmt.Sprint(t.Steps), t.Node, moment(t.CreatedAt), took(t.CreatedAt, t.EndedAt), short(t.Error, 60)})
	}
	return printTable(a.stdout, []string{"TASK", "FLOW", "STATE", "STEPS", "NODE", "STARTED", "TIME", "ERROR"}, rows)
}

// since reads a time, or how long ago it was; "" is no time.
func since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("--since %q is neither a duration such as 90m nor a time such as 2026-01-31", text)
}

func stateOf(t *wire.TaskSummary) string {
	if t.Paused {
		return t.State + " (paused)"
	}
	return t.State
}
