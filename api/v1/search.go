package v1

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// TaskPick selects tasks.
type TaskPick struct {
	Flow      []string  `query:"flow,explode" maxItems:"50" maxLength:"128" doc:"slug of the flow, or its id; several = any of them"`
	Version   int       `query:"version" minimum:"0" doc:"number of their version; 0 = any"`
	ID        string    `query:"id_prefix" maxLength:"256" doc:"what the ids begin with"`
	Text      string    `query:"q" maxLength:"256" doc:"what the ids begin with, or what a label says, or what is in the error, in letters of either case"`
	State     []string  `query:"state,explode" maxItems:"20" doc:"pending, running, completed, failed, canceling, canceled, or paused alone; words of other API families are understood; several = any of them"`
	Failure   string    `query:"error" maxLength:"200" doc:"how they failed: the beginning of their error, 200 characters, with # in place of each number behind the name of the node; as /v1/overview tells it" example:"pay: card # refused"`
	Node      string    `query:"node" maxLength:"1000" doc:"graph mode: where the cursor is"`
	Label     []string  `query:"label,explode" maxItems:"20" doc:"name:text; several = all of them" example:"[\"customer:7\"]"`
	From      time.Time `query:"created_from" doc:"created then or later"`
	To        time.Time `query:"created_to" doc:"created before"`
	EndedFrom time.Time `query:"ended_from" doc:"ended then or later"`
	EndedTo   time.Time `query:"ended_to" doc:"ended before"`
	Longest   int64     `query:"duration_max" minimum:"0" doc:"milliseconds from creation to end, of those that have ended: less than so many; 0 = any"`
	Waits     []string  `query:"waits,explode" maxItems:"20" doc:"what they wait for: approval, event, timer, or manual (somebody who completes a direct unit); several = any of them"`
	Queued    string    `query:"queued" maxLength:"256" doc:"a service: only those with jobs in its queue, claimed ones included; how many these are /v1/queues tells" example:"email"`
	Shortest  int64     `query:"duration_min" minimum:"0" doc:"the same: so many or more"`
}

type listTasksInput struct {
	Paging
	TaskPick
	Sort string `query:"sort" enum:"-created,created,-ended,ended" default:"-created" doc:"- = the newest first; by end: those that have ended"`
}

// taskFinder finds and counts the tasks that a filter selects.
type taskFinder struct {
	catalog *flowCatalog
	store   api.Store
}

func (h *taskHandler) listTasks(ctx context.Context, in *listTasksInput) (*bodyResponse[wire.Page[wire.TaskSummary]], error) {
	at, continued, err := in.parseCursor()
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.TaskSummary]{Items: []wire.TaskSummary{}}
	f, err := h.finder.filterOf(ctx, &in.TaskPick)
	if err != nil {
		return nil, err
	}
	f.Limit = in.Limit + 1
	f.ByEnd, f.Oldest = strings.HasSuffix(in.Sort, "ended"), in.Sort != "" && in.Sort[0] != '-'
	if continued {
		f.Before = persistence.Spot{CreatedAt: at.at, ID: at.name}
	}
	if f.Through, err = h.finder.searchedThrough(ctx, f); err != nil {
		return nil, err
	}
	rows, err := h.store.ListTasks(ctx, f)
	if err != nil {
		return nil, err
	}
	rows, more := cutPage(rows, in.Limit)
	for i := range rows {
		page.Items = append(page.Items, toSummary(&rows[i]))
	}
	switch {
	case more:
		page.Next = cursorOf(spotOf(f, &rows[len(rows)-1]))
	case f.Through.ID != "":
		page.Next, page.Searched = cursorOf(f.Through), wire.Millis(f.Through.CreatedAt)
	}
	return &bodyResponse[wire.Page[wire.TaskSummary]]{page}, nil
}

// searchedTasks is the number of tasks or approvals that are searched for one answer if no index
// has the filter.
const searchedTasks = 3_000

// searchedThrough returns the last task that a search reads; the zero Spot if it reads all that are
// left.
func (t *taskFinder) searchedThrough(ctx context.Context, f persistence.TaskFilter) (persistence.Spot, error) {
	wider, searches := f.Indexed()
	if !searches {
		return persistence.Spot{}, nil
	}
	wider.Limit, wider.Offset = 1, searchedTasks-1
	rows, err := t.store.ListTasks(ctx, wider)
	if err != nil || len(rows) == 0 {
		return persistence.Spot{}, err
	}
	return spotOf(f, &rows[0]), nil
}

// spotOf returns the position of a task in a list.
func spotOf(f persistence.TaskFilter, t *persistence.TaskRow) persistence.Spot {
	if f.ByEnd {
		return persistence.Spot{CreatedAt: t.EndedAt, ID: t.ID}
	}
	return persistence.Spot{CreatedAt: t.CreatedAt, ID: t.ID}
}

func cursorOf(at persistence.Spot) string { return listCursor{at.CreatedAt, at.ID}.String() }

type countTasksInput struct {
	TaskPick
	By string `query:"group_by" maxLength:"300" doc:"state, flow, or label:NAME: also how many there are of each" example:"label:customer"`
}

// Limits of counts: in total, and of each state. Larger numbers are of no use to readers, and the
// limit bounds the cost. Tasks with a label and another condition are read one by one.
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

func (h *taskHandler) countTasks(ctx context.Context, in *countTasksInput) (*bodyResponse[wire.TaskCount], error) {
	f, err := h.finder.filterOf(ctx, &in.TaskPick)
	if err != nil {
		return nil, err
	}
	by, err := byOf(in.By)
	if err != nil {
		return nil, err
	}
	answer, err := h.finder.countFiltered(ctx, f, by)
	switch {
	case err != nil:
		return nil, err
	case by != nil && by.Flow:
		if err := h.finder.nameFlows(ctx, answer.Groups); err != nil {
			return nil, err
		}
	}
	return &bodyResponse[wire.TaskCount]{*answer}, nil
}

// countFiltered counts tasks, grouped if the caller asks for it.
func (t *taskFinder) countFiltered(ctx context.Context, f persistence.TaskFilter, by *persistence.By) (*wire.TaskCount, error) {
	through, err := t.searchedThrough(ctx, f)
	if err != nil {
		return nil, err
	}
	f.Through = through
	most := mostCounted(&f)
	answer := &wire.TaskCount{Groups: []wire.TaskGroup{}, Exact: through.ID == ""}
	if by == nil {
		f.Most = most + 1
		n, err := t.store.CountTasks(ctx, f)
		answer.Count, answer.Exact = min(n, most), answer.Exact && n <= most
		return answer, err
	}
	f.Most = most
	groups, err := t.store.CountTasksBy(ctx, f, *by)
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		group := wire.TaskGroup{Key: key, Count: groups[key].Count, More: groups[key].More || through.ID != ""}
		answer.Count += group.Count
		answer.Exact = answer.Exact && !group.More
		answer.Groups = append(answer.Groups, group)
	}
	return answer, err
}

// byOf returns the grouping that a text names; nil for "".
func byOf(text string) (*persistence.By, error) {
	switch name, ok := strings.CutPrefix(text, "label:"); {
	case text == "":
		return nil, nil
	case text == "state":
		return &persistence.By{}, nil
	case text == "flow":
		return &persistence.By{Flow: true}, nil
	case ok && name != "":
		return &persistence.By{Label: name}, nil
	default:
		return nil, newInvalidError("query.group_by", "send state, flow or label:NAME", "tasks are not counted by %.80q", text)
	}
}

// nameFlows replaces the ids of flows in groups by their slugs. A deleted flow keeps its id.
func (t *taskFinder) nameFlows(ctx context.Context, groups []wire.TaskGroup) error {
	for i := range groups {
		f, err := t.store.Flow(ctx, groups[i].Key)
		switch {
		case api.Missing(err):
		case err != nil:
			return err
		default:
			groups[i].Key = nameOf(f)
		}
	}
	return nil
}

func (t *taskFinder) filterOf(ctx context.Context, in *TaskPick) (f persistence.TaskFilter, err error) {
	for _, name := range in.Flow {
		found, err := t.catalog.flowBy(ctx, "query.flow", name)
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
			*bound.to = max(ceilMillis(bound.at), 1) // 0 would be no filter
		}
	}
	return f, nil
}

// ceilMillis returns the first millisecond that is not before a time.
func ceilMillis(t time.Time) int64 { return t.Add(time.Millisecond - time.Nanosecond).UnixMilli() }

// statesOf parses the filter for states. Words may be repeated or separated by commas.
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
			return nil, nil, newInvalidError("query.state", hint, "%.40q is no state of a task", word)
		case !slices.Contains(statuses, string(state)):
			statuses = append(statuses, string(state))
		}
	}
	if paused != nil && len(statuses) > 0 {
		return nil, nil, newInvalidError("query.state", "ask for paused alone",
			"paused is no state but a time beside it, and cannot be one of several")
	}
	return statuses, paused, nil
}

// waitsOf parses the filter for waits. Words may be repeated or separated by commas.
func waitsOf(sent []string) (kinds flow.WaitKinds, err error) {
	for word := range strings.SplitSeq(strings.Join(sent, ","), ",") {
		kind := flow.WaitKindOf(strings.ToLower(strings.TrimSpace(word)))
		if kind == 0 && strings.TrimSpace(word) != "" {
			return 0, newInvalidError("query.waits",
				"known are: "+strings.Join(flow.AllWaits.Words(), ", "),
				"%.40q is nothing that a task is listed as waiting for", word)
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
			return nil, newInvalidError("query.label", "write name:text", "%.80q is no label", pair)
		}
		if other, twice := labels[name]; twice && other != text {
			return nil, newInvalidError("query.label", "ask once for each", "no task can have two labels %.80q", name)
		}
		labels[name] = text
	}
	return labels, nil
}
