package v1

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

type listTasksInput struct {
	Paging
	Flow  string    `query:"flow" maxLength:"128" doc:"slug of the flow, or its id"`
	ID    string    `query:"id_prefix" maxLength:"256" doc:"what the ids begin with"`
	State []string  `query:"state,explode" maxItems:"20" doc:"pending, running, completed, failed, canceling, canceled, or paused alone; words of other API families are understood; several = any of them"`
	Label []string  `query:"label,explode" maxItems:"20" doc:"name:text; several = all of them" example:"[\"customer:7\"]"`
	From  time.Time `query:"created_from" doc:"created then or later"`
	To    time.Time `query:"created_to" doc:"created before"`
}

func (s *service) listTasks(ctx context.Context, in *listTasksInput) (*body[wire.Page[wire.TaskSummary]], error) {
	at, continued, err := in.position()
	if err != nil {
		return nil, err
	}
	f, err := s.filterOf(ctx, in)
	if err != nil {
		return nil, err
	}
	f.Limit = in.Limit + 1
	if continued {
		f.Before = persistence.Spot{CreatedAt: at.at, ID: at.name}
	}
	rows, err := s.Store.ListTasks(ctx, f)
	if err != nil {
		return nil, err
	}
	rows, more := cut(rows, in.Limit)
	page := wire.Page[wire.TaskSummary]{Items: make([]wire.TaskSummary, len(rows))}
	for i := range rows {
		page.Items[i] = toSummary(&rows[i])
	}
	if more {
		last := rows[len(rows)-1]
		page.Next = cursor{last.CreatedAt, last.ID}.String()
	}
	return &body[wire.Page[wire.TaskSummary]]{page}, nil
}

func (s *service) filterOf(ctx context.Context, in *listTasksInput) (f persistence.TaskFilter, err error) {
	if in.Flow != "" {
		found, err := s.flowBy(ctx, "query.flow", in.Flow)
		if err != nil {
			return f, err
		}
		f.FlowID = found.ID
	}
	f.IDPrefix = in.ID
	if f.Statuses, f.Paused, err = statesOf(in.State); err != nil {
		return f, err
	}
	if f.Labels, err = labelsOf(in.Label); err != nil {
		return f, err
	}
	if !in.From.IsZero() {
		f.CreatedFrom = ceilMillis(in.From)
	}
	if !in.To.IsZero() {
		f.CreatedTo = max(ceilMillis(in.To), 1) // 0 would be no filter
	}
	return f, nil
}

// ceilMillis is the first millisecond that is not before a time.
func ceilMillis(t time.Time) int64 { return t.Add(time.Millisecond - time.Nanosecond).UnixMilli() }

// statesOf reads the filter. Words may be repeated or separated by commas.
func statesOf(sent []string) (statuses []string, paused *bool, err error) {
	const hint = "known are: pending, running, completed, failed, canceling, canceled, paused"
	words := strings.Split(strings.Join(sent, ","), ",")
	for _, word := range words {
		word = strings.ToLower(strings.TrimSpace(word))
		state := api.StateOf(word)
		switch {
		case word == "":
		case word == "paused":
			yes := true
			paused = &yes
		case state == "":
			return nil, nil, invalid("query.state", hint, "%.40q is no state of a task", word)
		case !slices.Contains(statuses, string(state)):
			statuses = append(statuses, string(state))
		}
	}
	if paused != nil && len(statuses) > 0 {
		return nil, nil, invalid("query.state", "ask for paused alone", "paused is no state but a time beside it, and cannot be one of several")
	}
	return statuses, paused, nil
}

func labelsOf(sent []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, pair := range sent {
		name, text, ok := strings.Cut(pair, ":")
		if !ok || name == "" {
			return nil, invalid("query.label", "write name:text", "%.80q is no label", pair)
		}
		if other, twice := labels[name]; twice && other != text {
			return nil, invalid("query.label", "ask once for each", "no task can have two labels %.80q", name)
		}
		labels[name] = text
	}
	return labels, nil
}
