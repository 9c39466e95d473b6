package flows

import (
	"cmp"
	"context"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type flowListCmd struct {
	console.RemoteFlags
	console.PagingFlags
}

// listedFlow is a flow with its newest task and the time of its next scheduled one.
type listedFlow struct {
	wire.Flow
	Last *wire.TaskSummary `json:"last_task,omitempty"`
	Next wire.Time         `json:"next_slot,omitzero"`
}

func (c *flowListCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	flows, err := console.ReadPage(c.PagingFlags, func(p client.Paging) (*wire.Page[wire.Flow], error) { return server.Flows(ctx, p) })
	if err != nil {
		return err
	}
	next, err := nextSlots(ctx, server)
	if err != nil {
		return err
	}
	listed := &wire.Page[listedFlow]{Items: []listedFlow{}, Next: flows.Next}
	for _, f := range flows.Items {
		name := cmp.Or(f.Slug, f.ID)
		newest, err := server.Tasks(ctx, client.TaskQuery{Flow: name, Paging: client.Paging{Limit: 1}})
		if err != nil {
			return console.SubjectError{Subject: name, Err: err}
		}
		one := listedFlow{Flow: f, Next: next[name]}
		if len(newest.Items) > 0 {
			one.Last = &newest.Items[0]
		}
		listed.Items = append(listed.Items, one)
	}
	t := console.Table{Header: []string{"FLOW", "LAST", "NEXT", "NAME", "DESCRIPTION", "CREATED"},
		Spare: []string{"CREATED", "DESCRIPTION", "NAME"}}
	return console.PrintPage(a, c.OutputFlag, listed, t, func(f *listedFlow) []string {
		return []string{cmp.Or(f.Slug, f.ID), f.lastState(), console.FormatTime(f.Next), f.Name,
			console.TruncateText(f.Description, 60), console.FormatTime(f.CreatedAt)}
	})
}

// lastState is the state of the newest task.
func (f *listedFlow) lastState() string {
	if f.Last == nil {
		return ""
	}
	return console.FormatState(f.Last)
}

// nextSlots returns when the schedules of each flow fire next.
func nextSlots(ctx context.Context, server *client.Client) (map[string]wire.Time, error) {
	schedules, err := console.ReadAll(0, func(p client.Paging) (*wire.Page[wire.Schedule], error) { return server.Schedules(ctx, "", p) })
	next := map[string]wire.Time{}
	for _, s := range schedules {
		if known := next[s.Flow]; !s.NextAt.IsZero() && (known.IsZero() || s.NextAt.Before(known.Time)) {
			next[s.Flow] = s.NextAt
		}
	}
	return next, err
}
