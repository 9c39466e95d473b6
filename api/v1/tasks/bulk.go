package tasks

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"net/http"
	"reflect"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// AddRoutes adds the routes of the handler.
func (h *StartHandler) AddRoutes(rt *route.Router) {
	h.addBulkRoutes(rt)
	h.addRerunRoutes(rt)
	h.addFastRoutes(rt)
}

func (h *StartHandler) addBulkRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "bulk-tasks", Method: http.MethodPost,
		Path: "/v1/tasks/bulk", Tag: "tasks",
		Summary: "Retry, cancel, pause, resume, rerun or fork many tasks",
		Text: "Up to 1,000 at once; next is set if there are more. Each task accepts or rejects the " +
			"command as it would alone, and failures lists the reasons. A request with an ID can " +
			"be sent again: it takes effect once on each task. Rerun and fork accept up to 100 " +
			"tasks at once, and a filter with created_to, so that it does not match the tasks " +
			"that they start."}, h.runBulk)
}

type bulkInput struct {
	Request
	Body wire.BulkRequest
}

const (
	bulkTasks  = 1000 // maximum number of tasks that get a command per request
	bulkStarts = 100  // maximum number of tasks started per request
	// time limit for all tasks, which is shorter than the limit of a request
	bulkTime = 20 * time.Second
)

func (h *StartHandler) runBulk(ctx context.Context, in *bulkInput) (*route.Response[wire.BulkResult], error) {
	if err := checkBulk(&in.Body); err != nil {
		return nil, err
	}
	request, err := in.commandRequestID(in.Body.Action)
	if err != nil {
		return nil, err
	}
	done := wire.BulkResult{Action: in.Body.Action, Exact: true, Failures: []wire.BulkFailure{}}
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
		return &route.Response[wire.BulkResult]{Body: done}, err
	}
	request = cmp.Or(request, in.Body.Action+":"+crand.Text())
	if startsAnew(&in.Body) {
		err = h.startAnew(ctx, ids, &in.Body, request, &done)
	} else {
		err = h.commandAll(ctx, ids, bulkCommand(&in.Body), request, &done)
	}
	if err != nil {
		return nil, err
	}
	h.Logger.Info("bulk command completed", "action", done.Action, "tasks", len(ids), "by", api.Who(ctx).Name)
	return &route.Response[wire.BulkResult]{Body: done}, nil
}

// checkBulk rejects a request that selects no tasks, or selects tasks in two ways.
func checkBulk(b *wire.BulkRequest) error {
	switch {
	case (b.Filter == nil) == (len(b.IDs) == 0):
		return route.NewInvalidError("body.filter", "send one of them", "either filter or ids selects the tasks, not both")
	case findDuplicate(b.IDs) != "":
		return route.NewInvalidError("body.ids", "send each id once", "ids contains %.80q twice", findDuplicate(b.IDs))
	case b.Filter != nil && reflect.ValueOf(*b.Filter).IsZero():
		return newEmptyFilterError()
	case b.Filter == nil && b.Cursor != "":
		return route.NewInvalidError("body.cursor", "send the other ids", "a cursor continues a filter, not a list of ids")
	case b.Action != "cancel" && (b.Graceful || b.Force):
		return route.NewInvalidError("body.action", "remove graceful and force", "graceful and force apply only to the action cancel")
	case b.From != "" && b.Action != "fork":
		return route.NewInvalidError("body.from", "remove from, or send the action fork", "only a fork continues from a node")
	case !startsAnew(b) && (b.Version > 0 || b.Latest):
		return route.NewInvalidError("body.version",
			"remove version and newest, or send the action rerun or fork",
			"a task keeps the version with which it started")
	case startsAnew(b) && b.Filter != nil && b.Filter.CreatedTo.IsZero():
		return route.NewInvalidError("body.filter.created_to", "send the present time",
			"the filter needs created_to, or it would also select the tasks that it starts")
	case b.Graceful && b.Force:
		return route.NewInvalidError("body.force", "send one of them", "a task cannot be canceled both gracefully and by force")
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
	return route.NewInvalidError("body.filter", "send a flow, a state or a label", "an empty filter would select every task")
}

func bulkCommand(b *wire.BulkRequest) flow.Command {
	switch b.Action {
	case "retry":
		return flow.RetryTask{}
	case "cancel":
		return flow.Cancel{Gently: b.Graceful, Force: b.Force}
	case "pause":
		return flow.Pause{}
	}
	return flow.Resume{}
}

// bulkFilter returns the store's filter for the filter of a bulk request.
func (h *StartHandler) bulkFilter(ctx context.Context, b *wire.BulkRequest) (persistence.TaskFilter, error) {
	f, err := h.Finder.ToFilter(ctx, catalog.ToTaskPick(b.Filter))
	if err != nil {
		return f, inBody(err, "filter.")
	}
	if len(f.Labels) == 0 {
		f.Labels = nil
	}
	if reflect.DeepEqual(f, persistence.TaskFilter{}) { // empty lists are replaced by nil first
		return f, newEmptyFilterError()
	}
	if len(f.Statuses) == 0 && f.Paused == nil {
		f.Statuses, f.Paused = actsOn(b)
	}
	return f, nil
}

// actsOn returns the states of the tasks to which an action applies.
func actsOn(b *wire.BulkRequest) (statuses []string, paused *bool) {
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

// inBody changes the place of an error from a query parameter to the body.
func inBody(err error, below string) error { return route.RelocateError(err, "body."+below) }

func (h *StartHandler) countBulk(ctx context.Context, b *wire.BulkRequest, done *wire.BulkResult) error {
	f, err := h.bulkFilter(ctx, b)
	if err != nil {
		return err
	}
	found, err := h.Finder.Count(ctx, f, nil)
	if err != nil {
		return err
	}
	done.Tasks, done.Exact = found.Count, found.Exact
	return nil
}

// pickBulk returns the ids of the tasks for one request, and the cursor for the next request.
func (h *StartHandler) pickBulk(ctx context.Context, b *wire.BulkRequest) (ids []string, next string, err error) {
	at, continued, err := (&route.Paging{Cursor: b.Cursor}).ParseCursor()
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
		f.Before = persistence.Spot{CreatedAt: at.At, ID: at.Name}
	}
	if f.Through, err = h.Finder.FindSearchBound(ctx, f); err != nil {
		return nil, "", err
	}
	rows, err := h.Store.ListTasks(ctx, f)
	if err != nil {
		return nil, "", err
	}
	rows, more := route.CutPage(rows, limit)
	for i := range rows {
		ids = append(ids, rows[i].ID)
	}
	switch {
	case more:
		next = catalog.CursorOf(catalog.SpotOf(f, &rows[len(rows)-1]))
	case f.Through.ID != "":
		next = catalog.CursorOf(f.Through)
	}
	return ids, next, nil
}

// countIDs counts the existing tasks among ids.
func (h *StartHandler) countIDs(ctx context.Context, ids []string, done *wire.BulkResult) error {
	for _, id := range ids {
		_, err := h.Store.Task(ctx, id)
		switch {
		case api.Missing(err):
			addRefusal(done, id, catalog.LocateTaskError(id, err))
		case err != nil:
			return err
		default:
			done.Tasks++
		}
	}
	return nil
}

// commandAll sends a command to tasks. A repeated request takes effect once for each task.
func (h *StartHandler) commandAll(ctx context.Context, ids []string, cmd flow.Command, request string, done *wire.BulkResult) error {
	orders := make(engine.Orders, len(ids))
	for i, id := range ids {
		orders[i] = engine.Order{Task: id, Command: cmd, Request: request}
	}
	ctx, cancel := context.WithTimeout(ctx, bulkTime)
	defer cancel()
	outcomes, err := h.Engine.DoAll(ctx, orders)
	if err != nil {
		return err
	}
	done.Tasks = len(ids)
	for i := range outcomes {
		switch out := &outcomes[i]; {
		case out.Err != nil:
			addRefusal(done, ids[i], catalog.LocateTaskError(ids[i], out.Err))
		case out.Changed > 0:
			done.Changed++
		default:
			done.Unchanged++
		}
	}
	return nil
}

func addRefusal(done *wire.BulkResult, task string, err error) {
	v := api.Judge(err)
	done.Failed++
	done.Failures = append(done.Failures, wire.BulkFailure{Task: task, Code: string(v.Kind), Message: v.What})
}
