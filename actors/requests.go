package actors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// keySpace is the name space of ids derived from idempotency keys.
var keySpace = uuid.MustParse("6f1d1a52-6b1c-4b5e-9a51-5e6c1c1a7e57")

// StartTask begins a task. created is false when a task with the same key had been started before.
// It answers when the task is stored.
func (m *Member) StartTask(ctx context.Context, n NewTask) (id string, created bool, err error) {
	msg, err := m.newTask(ctx, n)
	if err != nil {
		return "", false, err
	}
	a, err := m.call(ctx, func(reply func(answer)) {
		msg.reply = reply
		m.tell(m.tasks, msg)
	})
	if err != nil {
		return "", false, err
	}
	if errors.Is(a.err, persistence.ErrExists) {
		return msg.task, false, m.sameStart(ctx, msg)
	}
	return msg.task, a.err == nil, a.err
}

func (m *Member) newTask(ctx context.Context, n NewTask) (*create, error) {
	if err := m.admit(); err != nil {
		return nil, err
	}
	if err := checkJSON(n.Params); err != nil {
		return nil, flow.Errorf(flow.Invalid, "params: %v", err)
	}
	flowID, err := m.reader.FlowOf(ctx, n.VersionID)
	if err != nil {
		return nil, err
	}
	plan, err := m.reader.Plan(ctx, n.VersionID)
	if err != nil {
		return nil, err
	}
	id := "task-" + newID()
	if n.Key != "" {
		id = "task-" + uuid.NewSHA1(keySpace, []byte(flowID+"\n"+n.Key)).String()
	}
	return &create{
		task: id, plan: plan, start: flow.Start{Version: n.VersionID, Params: n.Params},
		create: &persistence.Create{
			FlowID: flowID, VersionID: n.VersionID, Labels: n.Labels, Params: paramsOr(n.Params),
			BodyHash: bodyHash(n), CreatedAt: m.now(),
		},
	}, nil
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func paramsOr(params json.RawMessage) []byte {
	if len(bytes.TrimSpace(params)) == 0 || string(params) == "null" {
		return []byte("{}")
	}
	return params
}

// bodyHash tells whether a repeated start is the same request. Only keyed starts need one, and those
// whose answer may get lost are told apart by their random id.
func bodyHash(n NewTask) string {
	if n.Key == "" {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", n.VersionID, n.Params)
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		fmt.Fprintf(h, "%q=%q\n", k, n.Labels[k])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (m *Member) sameStart(ctx context.Context, msg *create) error {
	row, err := m.store.Task(ctx, msg.task)
	if err != nil {
		return notFound(err, msg.task)
	}
	if row.BodyHash != msg.create.BodyHash {
		return flow.Errorf(flow.Conflict, "task %s was started with the same idempotency key but another version, params or labels: use another key", msg.task)
	}
	return nil
}

// Do gives a command to a task and answers when what it did is stored. A request id makes it safe to
// send it again; without one it gets one that covers what the member itself repeats.
func (m *Member) Do(ctx context.Context, task string, cmd flow.Command, request string) error {
	if err := m.Ready(); err != nil {
		return err
	}
	if err := checkCommand(cmd); err != nil {
		return err
	}
	if request == "" {
		request = uuid.NewString()
	}
	a, err := m.call(ctx, func(reply func(answer)) {
		m.tell(m.tasks, &command{task: task, cmd: cmd, request: request, reply: reply})
	})
	if err != nil {
		return err
	}
	return a.err
}

// call sends a request and waits for its answer.
func (m *Member) call(ctx context.Context, send func(reply func(answer))) (answer, error) {
	m.messages.Add(1)
	done := make(chan answer, 1)
	send(func(a answer) {
		m.messages.Add(-1)
		done <- a
	})
	m.park(func() bool { return len(done) > 0 || ctx.Err() != nil || m.ctx.Err() != nil })
	select {
	case a := <-done:
		return a, nil
	case <-ctx.Done():
		return answer{}, fmt.Errorf("waiting for the task: %w", ctx.Err())
	case <-m.ctx.Done():
		return answer{}, errLeaving
	}
}

// Poll claims queue jobs for a poller. It answers with none when nothing came within Wait.
func (m *Member) Poll(ctx context.Context, p Poll) ([]Claimed, error) {
	if err := m.Ready(); err != nil {
		return nil, err
	}
	done := make(chan []Claimed, 1)
	w := &poller{Poll: p, reply: func(got []Claimed) { done <- got }}
	m.tell(m.sessions, w)
	timeUp := make(chan struct{})
	if p.Wait > 0 {
		defer m.cfg.Host.Clock.AfterFunc(p.Wait, func() { close(timeUp) })()
	}
	for {
		m.park(func() bool { return len(done) > 0 || closed(timeUp) || ctx.Err() != nil || m.ctx.Err() != nil })
		select {
		case got := <-done:
			return got, nil
		case <-timeUp:
			timeUp = nil
			m.tell(m.sessions, stopPoll{poller: w})
		case <-ctx.Done():
			m.tell(m.sessions, leavePoll{w})
			return nil, ctx.Err()
		case <-m.ctx.Done():
			return nil, errLeaving
		}
	}
}

// Complete reports the end of a job. A late or repeated report is acknowledged and changes nothing.
func (m *Member) Complete(ctx context.Context, job string, r flow.Report) error {
	task, at, err := flow.ParseJobID(job)
	if err != nil {
		return err
	}
	r.Address = at
	return m.Do(ctx, task, r, "")
}

// Heartbeat prolongs a poller's claims and names the jobs that nobody waits for any longer.
func (m *Member) Heartbeat(ctx context.Context, worker string, jobs []string, token string) (canceled []string, err error) {
	until := m.now() + m.cfg.Visibility.Milliseconds()
	for _, job := range jobs {
		task, at, err := flow.ParseJobID(job)
		if err != nil {
			return nil, err
		}
		err = m.Do(ctx, task, flow.Extend{Address: at, Worker: worker, Token: token, Until: until}, "")
		switch kind := flow.KindOf(err); {
		case kind == flow.Conflict || kind == flow.NotFound:
			canceled = append(canceled, job)
		case err != nil:
			return nil, err
		}
	}
	return canceled, nil
}

// Await answers when a task has ended.
func (m *Member) Await(ctx context.Context, task string) (flow.TaskStatus, error) {
	type outcome struct {
		status flow.TaskStatus
		err    error
	}
	done := make(chan outcome, 1)
	w := &await{task: task, done: func(s flow.TaskStatus, err error) {
		select {
		case done <- outcome{s, err}:
		default:
		}
	}}
	m.tell(m.tasks, w)
	m.park(func() bool { return len(done) > 0 || ctx.Err() != nil || m.ctx.Err() != nil })
	select {
	case o := <-done:
		return o.status, o.err
	case <-ctx.Done():
		m.tell(m.tasks, stopWait{task, w})
		return "", ctx.Err()
	case <-m.ctx.Done():
		return "", errLeaving
	}
}

// Watch reads a task's journal from a position on, as it grows; it ends with the task.
func (m *Member) Watch(ctx context.Context, task string, after int64) iter.Seq2[persistence.Row, error] {
	return func(yield func(persistence.Row, error) bool) {
		grown, stop := m.hub.watch(task)
		defer stop()
		for {
			row, err := m.store.Task(ctx, task)
			if err != nil {
				yield(persistence.Row{}, notFound(err, task))
				return
			}
			rows, err := m.store.Rows(ctx, task, after, watchRows)
			if err != nil {
				yield(persistence.Row{}, err)
				return
			}
			for _, r := range rows {
				if after = r.Seq; !yield(r, nil) {
					return
				}
			}
			if len(rows) > 0 {
				continue
			}
			if flow.TaskStatus(row.Status).Ended() || !m.waitGrown(ctx, grown) {
				return
			}
		}
	}
}

// watchRows is how many journal rows a watcher reads at once.
const watchRows = 200

// slowSweep is how often a watcher looks without having been told to.
const slowSweep = 10 * time.Second

func (m *Member) waitGrown(ctx context.Context, grown <-chan struct{}) bool {
	timeUp := make(chan struct{})
	defer m.cfg.Host.Clock.AfterFunc(slowSweep, func() { close(timeUp) })()
	m.park(func() bool { return len(grown) > 0 || closed(timeUp) || ctx.Err() != nil || closed(m.hub.done) })
	select {
	case <-grown:
		return true
	case <-timeUp:
		return true
	case <-ctx.Done():
		return false
	case <-m.hub.done:
		return false
	}
}

func notFound(err error, task string) error {
	if errors.Is(err, persistence.ErrNotFound) {
		return errNoTask(task)
	}
	return err
}

// checkCommand refuses values that are no JSON before they reach a task.
func checkCommand(cmd flow.Command) error {
	var v json.RawMessage
	var what string
	switch c := cmd.(type) {
	case flow.Signal:
		v, what = c.Value, "the signal's value"
		if !utf8.ValidString(c.Key) || containsControl(c.Key) {
			return flow.Errorf(flow.Invalid, "key must be printable text")
		}
	case flow.Report:
		v, what = c.Output, "the result"
	default:
		return nil
	}
	if err := checkJSON(v); err != nil {
		return flow.Errorf(flow.Invalid, "%s: %v", what, err)
	}
	return nil
}

func containsControl(s string) bool {
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return true
		}
	}
	return false
}

func checkJSON(v json.RawMessage) error {
	if len(v) == 0 {
		return nil
	}
	if !json.Valid(v) || !utf8.Valid(v) {
		return errors.New("is no valid JSON in UTF-8")
	}
	return nil
}
