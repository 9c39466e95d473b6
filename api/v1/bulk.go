package v1

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *startHandler) addBulkRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "bulk-tasks", method: http.MethodPost,
		path: "/v1/tasks/bulk", tag: "tasks",
		summary: "Retry, cancel, pause, resume, rerun or fork many tasks",
		text: "Up to 1,000 at once; next says whether there are more. Each task takes the " +
			"command or refuses it by itself, as it would alone, and refusals say why. " +
			"A request with an id may be sent again: it has its effect once on each task. Rerun " +
			"and fork take up to 100 at once, and a filter with created_to, so that the tasks " +
			"they start are none of those it picks."}, h.runBulk)
}

type bulkInput struct {
	Request
	Body wire.Bulk
}

const (
	bulkTasks  = 1000 // tasks that get a command per request
	bulkStarts = 100  // tasks started per request
	// time in which all of them are answered; shorter than the limit of a request
	bulkTime = 20 * time.Second
)

func (h *startHandler) runBulk(ctx context.Context, in *bulkInput) (*bodyResponse[wire.BulkDone], error) {
	if err := checkBulk(&in.Body); err != nil {
		return nil, err
	}
	request, err := in.commandRequestID(in.Body.Action)
	if err != nil {
		return nil, err
	}
	done := wire.BulkDone{Action: in.Body.Action, Exact: true, Refusals: []wire.BulkRefusal{}}
	ids := in.Body.IDs
	switch {
	case in.Body.Filter != nil && in.Body.DryRun:
		err = h.countBulk(ctx, &in.Body, &done)
	case in.Body.Filter != nil:
		ids, done.Next, err = h.pickBulk(ctx, &in.Body)
	case in.Body.DryRun:
		err = h.countIDs(ctx, ids, &done)
	}
	if err != nil || in.Body.DryRun {
		return &bodyResponse[wire.BulkDone]{done}, err
	}
	request = orElse(request, in.Body.Action+":"+crand.Text())
	if startsAnew(&in.Body) {
		err = h.startAnew(ctx, ids, &in.Body, request, &done)
	} else {
		err = h.commandAll(ctx, ids, bulkCommand(&in.Body), request, &done)
	}
	if err != nil {
		return nil, err
	}
	h.logger.Info("many tasks were given a command", "action", done.Action, "tasks", len(ids), "by", api.Who(ctx).Name)
	return &bodyResponse[wire.BulkDone]{done}, nil
}

// checkBulk rejects a request that selects no tasks, or selects them twice.
func checkBulk(b *wire.Bulk) error {
	switch {
	case (b.Filter == nil) == (len(b.IDs) == 0):
		return newInvalidError("body.filter", "send one of them", "tasks are picked by a filter or by their ids")
	case findDuplicate(b.IDs) != "":
		return newInvalidError("body.ids", "send each once", "the id %.80q is there twice", findDuplicate(b.IDs))
	case b.Filter != nil && reflect.ValueOf(*b.Filter).IsZero():
		return newEmptyFilterError()
	case b.Filter == nil && b.Cursor != "":
		return newInvalidError("body.cursor", "send the other ids", "a cursor goes on behind tasks of a filter")
	case b.Action != "cancel" && (b.Gently || b.Force):
		return newInvalidError("body.action", "leave out gently and force", "they say how tasks are canceled")
	case b.From != "" && b.Action != "fork":
		return newInvalidError("body.from", "leave it out, or send the action fork", "only a fork goes on from a node")
	case !startsAnew(b) && (b.Version > 0 || b.Newest):
		return newInvalidError("body.version",
			"leave out version and newest, or send the action rerun or fork",
			"a task keeps the version it began with")
	case startsAnew(b) && b.Filter != nil && b.Filter.CreatedTo.IsZero():
		return newInvalidError("body.filter.created_to", "send the present time",
			"the filter has to say until when tasks were created, or it would pick those that "+
				"are started for them")
	case b.Gently && b.Force:
		return newInvalidError("body.force", "send one of them", "a task cannot be canceled gently and by force")
	}
	return nil
}

// findDuplicate returns a text that is in a list more than once; "" if there is none.
func findDuplicate(list []string) string {
	known := map[string]bool{}
	for _, text := range list {
		if known[text] {
			return text
		}
		known[text] = true
	}
	return ""
}

func newEmptyFilterError() error {
	return newInvalidError("body.filter", "say a flow, a state or a label", "a filter that says nothing would be every task")
}

func bulkCommand(b *wire.Bulk) flow.Command {
	switch b.Action {
	case "retry":
		return flow.RetryTask{}
	case "cancel":
		return flow.Cancel{Gently: b.Gently, Force: b.Force}
	case "pause":
		return flow.Pause{}
	}
	return flow.Resume{}
}

// bulkFilter returns the store's filter for a list with the same parameters.
func (h *startHandler) bulkFilter(ctx context.Context, b *wire.Bulk) (persistence.TaskFilter, error) {
	f, err := h.finder.filterOf(ctx, pickOf(b.Filter))
	if err != nil {
		return f, inBody(err, "filter.")
	}
	if len(f.Labels) == 0 {
		f.Labels = nil
	}
	if reflect.DeepEqual(f, persistence.TaskFilter{}) { // its lists are empty
		return f, newEmptyFilterError()
	}
	if len(f.Statuses) == 0 && f.Paused == nil {
		f.Statuses, f.Paused = actsOn(b)
	}
	return f, nil
}

// pickOf converts a filter to the parameters of a list.
func pickOf(w *wire.TaskFilter) *TaskPick {
	return &TaskPick{Flow: w.Flow, Version: w.Version, ID: w.IDPrefix, Text: w.Text, State: w.State,
		Failure: w.Failure, Waits: w.Waits, Queued: w.Queued, Node: w.Node, Label: w.Label,
		From: w.CreatedFrom.Time, To: w.CreatedTo.Time, EndedFrom: w.EndedFrom.Time,
		EndedTo: w.EndedTo.Time, Shortest: w.DurationMin, Longest: w.DurationMax}
}

// actsOn returns the states of the tasks that an action applies to.
func actsOn(b *wire.Bulk) (statuses []string, paused *bool) {
	yes, no := true, false
	under := []string{string(flow.TaskPending), string(flow.TaskRunning)}
	switch {
	case startsAnew(b):
		return []string{string(flow.TaskCompleted), string(flow.TaskFailed), string(flow.TaskCanceled)}, nil
	case b.Action == "retry":
		return []string{string(flow.TaskFailed)}, nil
	case b.Action == "pause":
		return under, &no
	case b.Action == "resume":
		return under, &yes
	case b.Force:
		return append(under, string(flow.TaskCanceling)), nil
	}
	return under, nil
}

// inBody changes the place of an error about a parameter to its place in the body.
func inBody(err error, below string) error { return relocateError(err, "body."+below) }

// inSubscribe does the same for the filter of a subscription.
func inSubscribe(err error) error { return relocateError(err, "subscribe.filter.") }

func relocateError(err error, what string) error {
	var l *locatedError
	if !errors.As(err, &l) {
		return err
	}
	return &locatedError{where: what + strings.TrimPrefix(l.where, "query."), hint: l.hint, err: l.err}
}

func (h *startHandler) countBulk(ctx context.Context, b *wire.Bulk, done *wire.BulkDone) error {
	f, err := h.bulkFilter(ctx, b)
	if err != nil {
		return err
	}
	found, err := h.finder.countFiltered(ctx, f, nil)
	if err != nil {
		return err
	}
	done.Tasks, done.Exact = found.Count, found.Exact
	return nil
}

// pickBulk returns the tasks of a call, and the cursor for the next call.
func (h *startHandler) pickBulk(ctx context.Context, b *wire.Bulk) (ids []string, next string, err error) {
	at, continued, err := (&Paging{Cursor: b.Cursor}).parseCursor()
	if err != nil {
		return nil, "", inBody(err, "")
	}
	f, err := h.bulkFilter(ctx, b)
	if err != nil {
		return nil, "", err
	}
	most := bulkTasks
	if startsAnew(b) {
		most = bulkStarts
	}
	limit := min(cmp.Or(b.Limit, most), most)
	f.Limit = limit + 1
	if continued {
		f.Before = persistence.Spot{CreatedAt: at.at, ID: at.name}
	}
	if f.Through, err = h.finder.searchedThrough(ctx, f); err != nil {
		return nil, "", err
	}
	rows, err := h.store.ListTasks(ctx, f)
	if err != nil {
		return nil, "", err
	}
	rows, more := cutPage(rows, limit)
	for i := range rows {
		ids = append(ids, rows[i].ID)
	}
	switch {
	case more:
		next = cursorOf(spotOf(f, &rows[len(rows)-1]))
	case f.Through.ID != "":
		next = cursorOf(f.Through)
	}
	return ids, next, nil
}

// countIDs counts the tasks that exist.
func (h *startHandler) countIDs(ctx context.Context, ids []string, done *wire.BulkDone) error {
	for _, id := range ids {
		_, err := h.store.Task(ctx, id)
		switch {
		case api.Missing(err):
			addRefusal(done, id, noTask(id, err))
		case err != nil:
			return err
		default:
			done.Tasks++
		}
	}
	return nil
}

// commandAll sends a command to tasks. A repeated request has its effect on each task once.
func (h *startHandler) commandAll(ctx context.Context, ids []string, cmd flow.Command, request string, done *wire.BulkDone) error {
	orders := make(engine.Orders, len(ids))
	for i, id := range ids {
		orders[i] = engine.Order{Task: id, Command: cmd, Request: request}
	}
	ctx, cancel := context.WithTimeout(ctx, bulkTime)
	defer cancel()
	outcomes, err := h.engine.DoAll(ctx, orders)
	if err != nil {
		return err
	}
	done.Tasks = len(ids)
	for i := range outcomes {
		switch out := &outcomes[i]; {
		case out.Err != nil:
			addRefusal(done, ids[i], noTask(ids[i], out.Err))
		case out.Changed > 0:
			done.Changed++
		default:
			done.Unchanged++
		}
	}
	return nil
}

func addRefusal(done *wire.BulkDone, task string, err error) {
	v := api.Judge(err)
	done.Refused++
	done.Refusals = append(done.Refusals, wire.BulkRefusal{Task: task, Kind: string(v.Kind), What: v.What})
}
