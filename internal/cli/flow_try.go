package cli

import (
	"context"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type flowTryCmd struct{ onceFlags }

// Help describes what remains after a try.
func (flowTryCmd) Help() string {
	return "Starts a task of the definition and follows that to its end, without publishing " +
		"anything: the flow that people see stays as it is. The task has the label troupe:try " +
		"and is deleted a day later. Exits as flow run does."
}

func (c *flowTryCmd) Run(ctx context.Context, a *app) error {
	return c.runOnce(ctx, a, func(server *client.Client, text []byte, start wire.Start) (*wire.Started, []wire.DefinitionProblem, error) {
		params := start.Params
		if len(params) == 0 {
			params = start.Input
		}
		tried, err := server.Try(ctx, text, wire.Try{Slug: start.Flow, Params: params, Labels: start.Labels, Strict: c.Strict})
		if err != nil {
			return nil, nil, subjectError{c.File, err}
		}
		return &wire.Started{ID: tried.ID, Created: tried.Created}, tried.Warnings, nil
	})
}
