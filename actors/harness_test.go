package actors_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Short forms of calls to a member.

func (th *harness) StartTask(ctx context.Context, n engine.NewTask) (id string, created bool, err error) {
	started, err := th.Member.StartTask(ctx, n)
	return started.Task, started.Created, err
}

func (th *harness) Do(ctx context.Context, task string, cmd flow.Command, request string) error {
	_, err := th.Tell(ctx, task, cmd, request)
	return err
}

func (th *harness) Tell(ctx context.Context, task string, cmd flow.Command, request string) ([]flow.Event, error) {
	out, err := th.Member.Do(ctx, engine.Order{Task: task, Command: cmd, Request: request, Events: true})
	return out.Events, err
}

func (th *harness) Append(ctx context.Context, task string, at flow.Address,
	items []json.RawMessage, route, request string) ([]int, error) {
	return engine.Append(ctx, th.Member, task, flow.Append{Address: at, Items: items, Route: route}, request)
}

func (th *harness) CompleteDirect(ctx context.Context, task string, at flow.Address, output json.RawMessage) (changed bool, err error) {
	out, err := th.Member.Do(ctx, engine.Direct(task, at, output, ""))
	return out.Changed > 0, err
}

func (th *harness) FailDirect(ctx context.Context, task string, at flow.Address, text string) (changed bool, err error) {
	out, err := th.Member.Do(ctx, engine.Direct(task, at, nil, text))
	return out.Changed > 0, err
}

func (th *harness) RetryTask(ctx context.Context, task, request string) error {
	return th.Do(ctx, task, flow.RetryTask{}, request)
}

func (th *harness) Cancel(ctx context.Context, task string, how flow.Cancel) error {
	return th.Do(ctx, task, how, "")
}

func (th *harness) Complete(ctx context.Context, job string, r flow.Report) error {
	order, err := engine.Completing(job, r)
	if err != nil {
		return err
	}
	_, err = th.Member.Do(ctx, order)
	return err
}

func (th *harness) Heartbeat(ctx context.Context, worker string, jobs []string, token string) (canceled []string, err error) {
	return th.Extend(ctx, worker, jobs, token, 0)
}

func (th *harness) Extend(ctx context.Context, worker string, jobs []string, token string,
	by time.Duration) (canceled []string, err error) {
	x, err := engine.Extend(ctx, th.Member, worker, claimsOf(jobs, token), by)
	return x.Canceled, err
}

func claimsOf(jobs []string, token string) []engine.Claim {
	claims := make([]engine.Claim, len(jobs))
	for i, job := range jobs {
		claims[i] = engine.Claim{Job: job, Token: token}
	}
	return claims
}
