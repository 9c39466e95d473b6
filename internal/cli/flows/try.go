package flows

import (
	"context"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type flowTryCmd struct{ onceFlags }

// Help describes the data that remain after a try.
func (flowTryCmd) Help() string {
	return "The published flow stays unchanged. The task has the label troupe:try " +
		"and is deleted after a day. " +
		"Exit codes are those of flow run."
}

func (c *flowTryCmd) Run(ctx context.Context, a *console.App) error {
	return c.runOnce(ctx, a, func(server *client.Client, text []byte,
		start wire.StartRequest) (*wire.StartResult, []wire.DefinitionProblem, error) {
		params := start.Params
		if len(params) == 0 {
			params = start.Input
		}
		tried, err := server.Try(ctx, text, wire.TrialRequest{Slug: start.Flow, Params: params, Labels: start.Labels, Strict: c.Strict})
		if err != nil {
			return nil, nil, console.SubjectError{Subject: c.File, Err: err}
		}
		return &wire.StartResult{ID: tried.ID, Created: tried.Created}, tried.Warnings, nil
	})
}
