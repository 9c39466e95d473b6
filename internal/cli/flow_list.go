package cli

import (
	"context"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type flowListCmd struct {
	remoteFlags
	pagingFlags
}

// listedFlow is a flow with its newest task and the time of its next scheduled one.
type listedFlow struct {
	wire.Flow
	Last *wire.TaskSummary `json:"last_task,omitempty"`
	Next wire.Time         `json:"next_slot,omitzero"`
}

func (c *flowListCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	flows, err := readPage(c.pagingFlags, func(p client.Paging) (*wire.Page[wire.Flow], error) { return server.Flows(ctx, p) })
	if err != nil {
		return err
	}
	next, err := nextSlots(ctx, server)
	if err != nil {
		return err
	}
	listed := &wire.Page[listedFlow]{Items: []listedFlow{}, Next: flows.Next}
	for _, f := range flows.Items {
		name := orElse(f.Slug, f.ID)
		newest, err := server.Tasks(ctx, client.TaskQuery{Flow: name, Paging: client.Paging{Limit: 1}})
		if err != nil {
			return subjectError{name, err}
		}
		one := listedFlow{Flow: f, Next: next[name]}
		if len(newest.Items) > 0 {
			one.Last = &newest.Items[0]
		}
		listed.Items = append(listed.Items, one)
	}
	t := table{header: []string{"FLOW", "LAST", "NEXT", "NAME", "DESCRIPTION", "CREATED"},
		spare: []string{"CREATED", "DESCRIPTION", "NAME"}}
	return printPage(a, c.outputFlag, listed, t, func(f *listedFlow) []string {
		return []string{orElse(f.Slug, f.ID), f.lastState(), formatTime(f.Next), f.Name,
			truncateText(f.Description, 60), formatTime(f.CreatedAt)}
	})
}

// lastState is the state of the newest task.
func (f *listedFlow) lastState() string {
	if f.Last == nil {
		return ""
	}
	return stateOf(f.Last)
}

// nextSlots returns when the schedules of each flow fire next.
func nextSlots(ctx context.Context, server *client.Client) (map[string]wire.Time, error) {
	schedules, err := readAll(0, func(p client.Paging) (*wire.Page[wire.Schedule], error) { return server.Schedules(ctx, "", p) })
	next := map[string]wire.Time{}
	for _, s := range schedules {
		if known := next[s.Flow]; !s.Next.IsZero() && (known.IsZero() || s.Next.Before(known.Time)) {
			next[s.Flow] = s.Next
		}
	}
	return next, err
}
