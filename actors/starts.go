package actors

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// StartTask starts a task and returns after the task is stored.
func (m *Member) StartTask(ctx context.Context, n engine.NewTask) (engine.Started, error) {
	n.Traced = cmp.Or(n.Traced, engine.TracedOf(ctx))
	msg, err := m.startPart().newTask(ctx, n)
	if err != nil {
		return engine.Started{}, m.requestPart().toCallerError(err)
	}
	if msg.repeats != nil {
		created, err := compareStart(msg.create, msg.newest, msg.repeats)
		return engine.Started{Task: msg.task, Created: created}, toEngineError(err)
	}
	a, err := m.requestPart().sendRequest(ctx, msg.start, func(reply func(commandAnswer)) {
		msg.reply = reply
		m.sendMessage(m.tasks, msg)
	})
	if err != nil {
		return engine.Started{}, m.requestPart().toCallerError(err)
	}
	switch {
	case errors.Is(a.err, persistence.ErrExists):
		created, err := m.startPart().sameStart(ctx, msg)
		return engine.Started{Task: msg.task, Created: created}, toEngineError(err)
	case errors.Is(a.err, persistence.ErrNoVersion):
		m.reader.Forget(n.VersionID)
		return engine.Started{}, flow.Errorf(flow.NotFound, "there is no flow version %s: its flow was deleted", n.VersionID)
	}
	return engine.Started{Task: msg.task, Created: a.err == nil}, m.requestPart().toCallerError(a.err)
}

func (m taskStarting) newTask(ctx context.Context, n engine.NewTask) (*createTask, error) {
	if err := m.requestPart().admitCommand(flow.Start{}); err != nil {
		return nil, err
	}
	start, err := m.newStart(ctx, n)
	if err != nil {
		return nil, err
	}
	n.Params = start.Params
	plan, err := m.reader.Plan(ctx, n.VersionID)
	if err != nil {
		return nil, err
	}
	id, err := n.TaskID(plan.FlowID)
	if err != nil {
		return nil, err
	}
	// a later refusal would leave an actor without a task
	if start, err = start.Fit(plan, m.cfg.Limits); err != nil {
		if row := m.findStarted(ctx, id, n); row != nil {
			return &createTask{task: id, plan: plan, newest: n.Newest, repeats: row, create: &persistence.Create{
				FlowID: plan.FlowID, VersionID: n.VersionID, BodyHash: bodyHash(n)}}, nil
		}
		return nil, err
	}
	start.Traced = m.cfg.Tracing.Sampling.Of(id, n.Traced)
	if start, err = m.values.OffloadStart(ctx, id, n.Fork, start); err != nil {
		return nil, err
	}
	return &createTask{
		task: id, plan: plan, newest: n.Newest, start: start,
		create: &persistence.Create{
			FlowID: plan.FlowID, VersionID: n.VersionID, Labels: n.Labels, Params: paramsOr(start.Params),
			BodyHash: bodyHash(n), CreatedAt: m.nowMillis(),
		},
	}, nil
}

// findStarted returns the task that an earlier start with the same key created; nil if there is
// none. It finds the task even if the flow was published with other inputs since.
func (m taskStarting) findStarted(ctx context.Context, id string, n engine.NewTask) *persistence.TaskRow {
	if n.Key == "" && n.ID == "" {
		return nil
	}
	row, err := m.store.Task(ctx, id)
	if err != nil {
		return nil
	}
	return row
}

// newStart returns the start command of a new task, which may copy a part of another task's
// history.
func (m taskStarting) newStart(ctx context.Context, n engine.NewTask) (flow.Start, error) {
	if n.Fork == "" {
		return flow.Start{Version: n.VersionID, Params: n.Params}, nil
	}
	if n.Anew {
		return m.rerunStart(ctx, n)
	}
	plan, err := m.reader.Fork(ctx, n.Fork, n.VersionID, persistence.ForkAt{Node: n.ForkNode, Row: n.ForkRow})
	if err != nil {
		return flow.Start{}, notFound(err, n.Fork)
	}
	if err := plan.ChangeResults(n.Results, m.cfg.Limits); err != nil {
		return flow.Start{}, err
	}
	return plan.Start(n.VersionID, n.Params, n.Shared), nil
}

// rerunStart returns the start command of a task that repeats another one.
func (m taskStarting) rerunStart(ctx context.Context, n engine.NewTask) (flow.Start, error) {
	row, err := m.store.Task(ctx, n.Fork)
	if err != nil {
		return flow.Start{}, notFound(err, n.Fork)
	}
	start := flow.Start{Version: n.VersionID, Params: n.Params, Origin: n.Fork}
	if len(start.Params) == 0 {
		start.Params = row.Params
	}
	return start, nil
}

func paramsOr(params json.RawMessage) []byte {
	if len(bytes.TrimSpace(params)) == 0 || string(params) == "null" {
		return []byte("{}")
	}
	return params
}

// bodyHash returns the hash that identifies a repeated start. It covers the values in canonical
// form, followed by the request id. It is empty for starts without a key, because their task ids
// are random.
func bodyHash(n engine.NewTask) string {
	if n.Key == "" && n.ID == "" {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", flow.CanonicalJSON(paramsOr(n.Params)))
	if n.Fork != "" {
		fmt.Fprintf(h, "%q %q %d %t\n", n.Fork, n.ForkNode, n.ForkRow, n.Anew)
		for _, k := range slices.Sorted(maps.Keys(n.Shared)) {
			fmt.Fprintf(h, "%q: %s\n", k, flow.CanonicalJSON(n.Shared[k]))
		}
		for _, k := range slices.Sorted(maps.Keys(n.Results)) {
			fmt.Fprintf(h, "result of %q: %s\n", k, flow.CanonicalJSON(n.Results[k]))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		fmt.Fprintf(h, "%q=%q\n", k, n.Labels[k])
	}
	return hex.EncodeToString(h.Sum(nil)[:16]) + ofRequest + n.Request
}

// ofRequest separates the hash from the request id in Create.BodyHash.
const ofRequest = "/"

// sameStart reports whether an earlier delivery of this request created the task. It returns an
// error for a start with other contents.
func (m taskStarting) sameStart(ctx context.Context, msg *createTask) (created bool, err error) {
	row, err := m.store.Task(ctx, msg.task)
	if err != nil {
		return false, notFound(err, msg.task)
	}
	return compareStart(msg.create, msg.newest, row)
}

// compareStart compares a start with the existing task. created reports whether the same request
// created the task.
func compareStart(c *persistence.Create, newest bool, row *persistence.TaskRow) (created bool, err error) {
	before, first, _ := strings.Cut(row.BodyHash, ofRequest)
	now, request, _ := strings.Cut(c.BodyHash, ofRequest)
	if before != now || row.FlowID != c.FlowID || row.VersionID != c.VersionID && !newest {
		return false, flow.Errorf(flow.Conflict,
			"task %s was started before, by a request for another flow, version, params or labels", row.ID)
	}
	return request != "" && first == request, nil
}
