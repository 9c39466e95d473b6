package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"net/url"
	"strconv"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// TaskPick selects tasks.
type TaskPick struct {
	Flow      []string  `query:"flow,explode" maxItems:"50" maxLength:"128" doc:"Slugs or IDs of flows; tasks match any of them."`
	Version   int       `query:"version" minimum:"0" doc:"Number of the version; 0 = any."`
	ID        string    `query:"id_prefix" maxLength:"256" doc:"Prefix of the ID."`
	Text      string    `query:"q" maxLength:"256" doc:"Prefix of the task ID, value of a label, or part of the error; case-insensitive."`
	State     []string  `query:"state,explode" maxItems:"20" doc:"States: pending, running, completed, failed, canceling, canceled, or only paused; tasks match any of them. States of other API families are accepted."`
	Failure   string    `query:"error" maxLength:"200" doc:"Error of failed tasks: its first 200 characters, with # instead of each number after the name of the node, as in /v1/overview." example:"pay: card # refused"`
	Node      string    `query:"node" maxLength:"1000" doc:"Node of the cursor, in graph mode."`
	Label     []string  `query:"label,explode" maxItems:"20" doc:"Labels as NAME:VALUE; tasks match all of them." example:"[\"customer:7\"]"`
	From      time.Time `query:"created_from" doc:"Earliest time of creation."`
	To        time.Time `query:"created_to" doc:"Time before which the task was created."`
	EndedFrom time.Time `query:"ended_from" doc:"Earliest time of the end."`
	EndedTo   time.Time `query:"ended_to" doc:"Time before which the task ended."`
	Longest   int64     `query:"duration_max" minimum:"0" doc:"Duration of ended tasks in milliseconds that is not reached; 0 = any."`
	Waits     []string  `query:"waiting_for,explode" maxItems:"20" doc:"Kinds of waits: approval, signal, timer, or manual (the completion of a direct unit); tasks match any of them."`
	Queued    string    `query:"queued" maxLength:"256" doc:"Service: only tasks with jobs in its queue, including claimed ones; /v1/queues returns their number." example:"email"`
	Shortest  int64     `query:"duration_min" minimum:"0" doc:"Minimum duration of ended tasks in milliseconds."`
}

// Tasks finds and counts the tasks that a filter selects.
type Tasks struct {
	Catalog *Flows
	Store   api.Store
}

// SearchedTasks is the number of tasks or approvals that one request searches if no index fits the
// filter.
const SearchedTasks = 3_000

// FindSearchBound returns the last task that a search reads; zero if the search reads all remaining
// ones.
func (t *Tasks) FindSearchBound(ctx context.Context, f persistence.TaskFilter) (persistence.Spot, error) {
	wider, searches := f.Indexed()
	if !searches {
		return persistence.Spot{}, nil
	}
	wider.Limit, wider.Offset = 1, SearchedTasks-1
	rows, err := t.Store.ListTasks(ctx, wider)
	if err != nil || len(rows) == 0 {
		return persistence.Spot{}, err
	}
	return SpotOf(f, &rows[0]), nil
}

// SpotOf returns the position of a task in the order of a filter.
func SpotOf(f persistence.TaskFilter, t *persistence.TaskRow) persistence.Spot {
	if f.ByEnd {
		return persistence.Spot{CreatedAt: t.EndedAt, ID: t.ID}
	}
	return persistence.Spot{CreatedAt: t.CreatedAt, ID: t.ID}
}

// CursorOf returns the cursor for a position in a list of tasks.
func CursorOf(at persistence.Spot) string {
	return route.Cursor{At: at.CreatedAt, Name: at.ID}.String()
}

// These are the limits of counts, in total and for each state. They bound the cost, and larger
// numbers are of little use. Tasks with a label and another condition are read one by one.
const (
	countedTasks = 10_000
	countedEach  = 1_000
)

func mostCounted(f *persistence.TaskFilter) int {
	if len(f.Labels) > 1 || len(f.Labels) == 1 && (len(f.Statuses) > 0 || f.OfFlows()) {
		return countedEach
	}
	return countedTasks
}

// Count counts tasks. by is the grouping; nil means none.
func (t *Tasks) Count(ctx context.Context, f persistence.TaskFilter, by *persistence.By) (*wire.TaskCount, error) {
	through, err := t.FindSearchBound(ctx, f)
	if err != nil {
		return nil, err
	}
	f.Through = through
	most := mostCounted(&f)
	answer := &wire.TaskCount{Groups: []wire.TaskGroup{}, Exact: through.ID == ""}
	if by == nil {
		f.Most = most + 1
		n, err := t.Store.CountTasks(ctx, f)
		answer.Count, answer.Exact = min(n, most), answer.Exact && n <= most
		return answer, err
	}
	f.Most = most
	groups, err := t.Store.CountTasksBy(ctx, f, *by)
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		group := wire.TaskGroup{Key: key, Count: groups[key].Count, Truncated: groups[key].More || through.ID != ""}
		answer.Count += group.Count
		answer.Exact = answer.Exact && !group.Truncated
		answer.Groups = append(answer.Groups, group)
	}
	return answer, err
}

// NameFlows replaces flow ids in groups by slugs. The id of a deleted flow stays.
func (t *Tasks) NameFlows(ctx context.Context, groups []wire.TaskGroup) error {
	for i := range groups {
		f, err := t.Store.Flow(ctx, groups[i].Key)
		switch {
		case api.Missing(err):
		case err != nil:
			return err
		default:
			groups[i].Key = NameOf(f)
		}
	}
	return nil
}

// ToFilter converts the parameters of a list to a filter of the store. It resolves the names of
// flows.
func (t *Tasks) ToFilter(ctx context.Context, in *TaskPick) (f persistence.TaskFilter, err error) {
	for _, name := range in.Flow {
		found, err := t.Catalog.FindFlow(ctx, "query.flow", name)
		if err != nil {
			return f, err
		}
		f.FlowIDs = append(f.FlowIDs, found.ID)
	}
	if len(f.FlowIDs) == 1 {
		f.FlowID, f.FlowIDs = f.FlowIDs[0], nil
	}
	f.Failure, f.Queued = in.Failure, in.Queued
	f.IDPrefix, f.Version, f.Text, f.Node, f.LastedFrom, f.LastedTo = in.ID, in.Version, in.Text, in.Node, in.Shortest, in.Longest
	if f.Statuses, f.Paused, err = statesOf(in.State); err != nil {
		return f, err
	}
	if f.Failure != "" && len(f.Statuses) == 0 {
		f.Statuses = []string{string(flow.TaskFailed)}
	}
	if f.Waits, err = waitsOf(in.Waits); err != nil {
		return f, err
	}
	if f.Labels, err = labelsOf(in.Label); err != nil {
		return f, err
	}
	for _, bound := range []struct {
		at time.Time
		to *int64
	}{{in.From, &f.CreatedFrom}, {in.To, &f.CreatedTo}, {in.EndedFrom, &f.EndedFrom}, {in.EndedTo, &f.EndedTo}} {
		if !bound.at.IsZero() {
			*bound.to = max(CeilMillis(bound.at), 1) // 0 would mean no filter
		}
	}
	return f, nil
}

// CeilMillis returns the first millisecond that is not before a time.
func CeilMillis(t time.Time) int64 { return t.Add(time.Millisecond - time.Nanosecond).UnixMilli() }

// statesOf parses the state parameter, in which words may be repeated or separated by commas.
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
			return nil, nil, route.NewInvalidError("query.state", hint, "%.40q is not a state of a task", word)
		case !slices.Contains(statuses, string(state)):
			statuses = append(statuses, string(state))
		}
	}
	if paused != nil && len(statuses) > 0 {
		return nil, nil, route.NewInvalidError("query.state", "send paused alone",
			"paused cannot be combined with states, because a paused task also has a state")
	}
	return statuses, paused, nil
}

// waitsOf parses the waiting_for parameter, in which words may be repeated or separated by commas.
func waitsOf(sent []string) (kinds flow.WaitKinds, err error) {
	for word := range strings.SplitSeq(strings.Join(sent, ","), ",") {
		kind := flow.WaitKindOf(strings.ToLower(strings.TrimSpace(word)))
		if kind == 0 && strings.TrimSpace(word) != "" {
			return 0, route.NewInvalidError("query.waiting_for",
				"known are: "+strings.Join(flow.AllWaits.Words(), ", "),
				"%.40q is not a reason for which tasks wait", word)
		}
		kinds |= kind
	}
	return kinds, nil
}

func labelsOf(sent []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, pair := range sent {
		name, text, ok := strings.Cut(pair, ":")
		if !ok || name == "" {
			return nil, route.NewInvalidError("query.label", "write name:text", "%.80q is not a label", pair)
		}
		if other, twice := labels[name]; twice && other != text {
			return nil, route.NewInvalidError("query.label", "send each label once", "a task has only one label %.80q", name)
		}
		labels[name] = text
	}
	return labels, nil
}

// ToTaskPick converts a filter to list parameters.
func ToTaskPick(w *wire.TaskFilter) *TaskPick {
	return &TaskPick{Flow: w.Flow, Version: w.Version, ID: w.IDPrefix, Text: w.Text, State: w.State,
		Failure: w.Failure, Waits: w.WaitingFor, Queued: w.Queued, Node: w.Node, Label: w.Label,
		From: w.CreatedFrom.Time, To: w.CreatedTo.Time, EndedFrom: w.EndedFrom.Time,
		EndedTo: w.EndedTo.Time, Shortest: w.DurationMin, Longest: w.DurationMax}
}

// CountListed counts the tasks of a list query, and returns the count with the query.
func (t *Tasks) CountListed(ctx context.Context, pick TaskPick) (wire.TaskQuery, error) {
	f, err := t.ToFilter(ctx, &pick)
	if err != nil {
		return wire.TaskQuery{}, err
	}
	n, err := t.Count(ctx, f, nil)
	if err != nil {
		return wire.TaskQuery{}, err
	}
	return wire.TaskQuery{Count: n.Count, Exact: n.Exact, Query: pick.ToQuery()}, nil
}

// ToQuery returns the query string of the filter. It only includes the fields that overviews use.
func (p *TaskPick) ToQuery() string {
	q := url.Values{}
	for _, state := range p.State {
		q.Add("state", state)
	}
	for _, flow := range p.Flow {
		q.Add("flow", flow)
	}
	if p.Failure != "" {
		q.Set("error", p.Failure)
	}
	if p.Version > 0 {
		q.Set("version", strconv.Itoa(p.Version))
	}
	for name, at := range map[string]time.Time{"created_from": p.From, "ended_from": p.EndedFrom} {
		if !at.IsZero() {
			q.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return q.Encode()
}

// TaskPath identifies a task.
type TaskPath struct {
	Task string `path:"task" maxLength:"200" doc:"ID of the task."`
}

// LocateTaskError converts a missing-task error to one with a place and a hint. It returns other
// errors unchanged.
func LocateTaskError(task string, err error) error {
	if api.Missing(err) {
		return route.NewNotFoundError("path.task",
			"check the id; ended tasks are deleted after the retention time", "there is no task %.210q", task)
	}
	return err
}
