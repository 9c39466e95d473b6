package actors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/actors/lease"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Do carries out an order. An order without a request id gets one, so that the task recognizes
// retries of this member.
func (m *Member) Do(ctx context.Context, o engine.Order) (engine.Outcome, error) {
	cmd, err := m.requestPart().prepareCommand(ctx, o)
	if err != nil {
		return engine.Outcome{}, err
	}
	a, err := m.requestPart().askTask(ctx, &taskCommand{task: o.Task, command: cmd, request: o.Named().Request, events: o.Events})
	if err != nil {
		return engine.Outcome{}, m.requestPart().toCallerError(err)
	}
	return outcomeOf(cmd, a, m.nowMillis()), nil
}

// outcomeOf converts a task's answer to a command to the form for callers.
func outcomeOf(cmd flow.Command, a commandAnswer, now int64) engine.Outcome {
	out := engine.Outcome{Changed: a.changed, Events: a.events, First: a.first, Given: a.given, Held: a.held, Err: toEngineError(a.err)}
	if claim, ok := cmd.(flow.Claim); ok && a.job != nil {
		got := toClaimed(a.job, claim.Token, now)
		out.Job = &got
	}
	return out
}

// prepareCommand refuses values that are not JSON, and stores large values outside the store. A
// claim also gets the registration time of its worker and its expiry.
func (m memberRequests) prepareCommand(ctx context.Context, o engine.Order) (flow.Command, error) {
	if err := checkCommand(o.Command); err != nil {
		return nil, err
	}
	cmd, err := m.values.OffloadCommand(ctx, o.Task, o.Command)
	if err != nil {
		return nil, err
	}
	until := m.nowMillis() + m.cfg.Visibility.Milliseconds()
	switch c := cmd.(type) {
	case flow.Extend:
		c.Until = cmp.Or(c.Until, until)
		return c, nil
	case flow.Claim:
		c.Since, c.Until = cmp.Or(c.Since, m.carryPart().workerJoinedAt(c.Worker)), cmp.Or(c.Until, until)
		return c, nil
	}
	return cmd, nil
}

// askTask sends a command to its task and returns the answer.
func (m memberRequests) askTask(ctx context.Context, cmd *taskCommand) (commandAnswer, error) {
	if err := m.admitCommand(cmd.command); err != nil {
		return commandAnswer{}, err
	}
	a, err := m.sendRequest(ctx, cmd.command, func(reply func(commandAnswer)) {
		cmd.reply = reply
		m.sendMessage(m.tasks, cmd)
	})
	if err != nil {
		return commandAnswer{}, err
	}
	return a, a.err
}

// sendRequest sends a request and waits for its answer.
func (m memberRequests) sendRequest(ctx context.Context, cmd flow.Command, send func(reply func(commandAnswer))) (commandAnswer, error) {
	if err := ctx.Err(); err != nil {
		return commandAnswer{}, err // the caller has gone
	}
	done := make(chan commandAnswer, 1)
	send(m.trackRequest(cmd, func(a commandAnswer) { done <- a }))
	return m.awaitStored(ctx, done)
}

// patienceKey is the context key of withPatience.
type patienceKey struct{}

// withPatience marks a request of the member itself. Such a request waits for its answer even while
// the store is unavailable.
func withPatience(ctx context.Context) context.Context {
	return context.WithValue(ctx, patienceKey{}, true)
}

// awaitStored waits for an answer that requires a write to the store. It stops waiting if the store
// becomes unavailable.
func (m memberRequests) awaitStored(ctx context.Context, done <-chan commandAnswer) (commandAnswer, error) {
	_, gone := m.lease.Watchdog.AwayState()
	if ctx.Value(patienceKey{}) != nil {
		gone = nil
	}
	a, err := answerOf(ctx, m.Member, done, gone)
	if errors.Is(err, errTimeUp) {
		reason, _ := m.lease.Watchdog.AwayState()
		err = lease.NewUnknownResultError(reason)
	}
	return a, err
}

// Poll claims queue jobs for a poller. It returns no jobs if none came within Wait.
func (m *Member) Poll(ctx context.Context, p engine.Poll) (engine.Jobs, error) {
	if err := m.requestPart().checkPoll(&p); err != nil {
		return nil, err
	}
	done := make(chan engine.Jobs, 1)
	w := newPoller(p, func(got engine.Jobs) { done <- got })
	m.sendMessage(m.sessions, w)
	timeUp := make(chan struct{})
	if p.Wait > 0 {
		defer m.work.After(p.Wait, func() { close(timeUp) })()
	}
	got, err := answerOf(ctx, m, done, timeUp)
	if errors.Is(err, errTimeUp) {
		m.sendMessage(m.sessions, stopPoll{poller: w})
		got, err = answerOf(ctx, m, done, nil)
	}
	if err != nil {
		m.sendMessage(m.sessions, leavePoll{w})
	}
	return got, err
}

// checkPoll refuses an invalid poll, and records that its worker polls.
func (m memberRequests) checkPoll(p *engine.Poll) error {
	if err := cmp.Or(m.checkAvailable(), p.Check()); err != nil {
		return err
	}
	if m.cfg.Workers != nil {
		m.cfg.Workers.Polled(p.Worker)
	}
	return nil
}

// requestChunk bounds how many commands of one request are in flight.
const requestChunk = 500

// DoAll carries out orders that may be repeated, and returns the outcome of each.
func (m *Member) DoAll(ctx context.Context, orders engine.Orders) (engine.Outcomes, error) {
	return m.requestPart().doAll(ctx, orders, nil)
}

func (m memberRequests) doAll(ctx context.Context, orders engine.Orders, rider *poller) (engine.Outcomes, error) {
	outcomes := make(engine.Outcomes, 0, len(orders))
	for group := range slices.Chunk(orders, requestChunk) {
		outcomes = append(outcomes, m.doGroup(ctx, group, rider)...)
		if err := ctx.Err(); errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	return outcomes, nil
}

// doGroup carries out a group of orders. An order that is not answered in time gets an error, and
// the outcomes of the others are kept.
func (m memberRequests) doGroup(ctx context.Context, group []engine.Order, rider *poller) engine.Outcomes {
	pending := make([]chan commandAnswer, len(group))
	for i, o := range group {
		done := make(chan commandAnswer, 1)
		pending[i] = done
		cmd, err := m.prepareCommand(ctx, o)
		if err = cmp.Or(ctx.Err(), m.admitCommand(o.Command), err); err != nil {
			done <- commandAnswer{err: err}
			continue
		}
		m.sendMessage(m.tasks, &taskCommand{task: o.Task, command: cmd, request: o.Request,
			events: o.Events, orderPoll: rider,
			reply: m.trackRequest(cmd, func(a commandAnswer) { done <- a })})
	}
	outcomes := make(engine.Outcomes, len(group))
	for i, done := range pending {
		a, err := m.awaitStored(ctx, done)
		if err != nil {
			a.err = err
		}
		outcomes[i] = outcomeOf(group[i].Command, a, m.nowMillis())
		outcomes[i].Err = m.toCallerError(a.err)
	}
	return outcomes
}

// Await waits until a task has ended.
func (m *Member) Await(ctx context.Context, task string) (flow.TaskStatus, error) {
	type outcome struct {
		status flow.TaskStatus
		err    error
	}
	done := make(chan outcome, 1)
	w := &awaitTask{task: task, done: func(s flow.TaskStatus, err error) {
		select {
		case done <- outcome{s, err}:
		default:
		}
	}}
	m.sendMessage(m.tasks, w)
	o, err := answerOf(ctx, m, done, nil)
	if err != nil {
		m.sendMessage(m.tasks, stopWait{task, w})
		return "", m.requestPart().toCallerError(err)
	}
	return o.status, m.requestPart().toCallerError(o.err)
}

// Watch returns the rows of a task's journal after a position, as they are written. The sequence
// ends with the task, or with an error if the member stops first.
func (m *Member) Watch(ctx context.Context, task string, after int64) iter.Seq2[engine.Row, error] {
	return func(yield func(engine.Row, error) bool) {
		grown, stop := m.hub.WatchTask(task)
		defer stop()
		for {
			row, err := m.store.Task(ctx, task)
			if err != nil {
				yield(engine.Row{}, toEngineError(notFound(err, task)))
				return
			}
			rows, err := m.store.Rows(ctx, task, after, watchPage)
			if err != nil {
				yield(engine.Row{}, toEngineError(err))
				return
			}
			for _, r := range rows {
				if after = r.Seq; !yield(engine.Row(r), nil) {
					return
				}
			}
			if len(rows) > 0 {
				continue
			}
			if flow.TaskStatus(row.Status).Ended() {
				return
			}
			if !m.requestPart().waitGrown(ctx, grown) {
				if ctx.Err() == nil {
					yield(engine.Row{}, m.requestPart().toCallerError(errLeaving))
				}
				return
			}
		}
	}
}

// Appears waits until a task exists. It serves callers that know the id before the task is started.
func (m *Member) Appears(ctx context.Context, task string) error {
	grown, stop := m.hub.WatchTask(task)
	defer stop()
	for {
		if _, err := m.store.Task(ctx, task); !errors.Is(err, persistence.ErrNotFound) {
			return toEngineError(err)
		}
		if !m.requestPart().waitGrown(ctx, grown) {
			return cmp.Or(ctx.Err(), error(errLeaving))
		}
	}
}

// watchPage is the part of a journal that a watcher reads at once.
var watchPage = persistence.Part{Rows: 200, Bytes: 256 << 10}

// watchRecheck is how often a watcher reads the journal without a notice.
const watchRecheck = 10 * time.Second

func (m memberRequests) waitGrown(ctx context.Context, grown <-chan struct{}) bool {
	timeUp := make(chan struct{})
	defer m.work.After(watchRecheck, func() { close(timeUp) })()
	m.work.Park(func() bool {
		return len(grown) > 0 || host.Closed(timeUp) || ctx.Err() != nil || host.Closed(m.hub.Done)
	})
	select {
	case <-grown:
	case <-timeUp:
	case <-ctx.Done():
	case <-m.hub.Done:
	}
	return ctx.Err() == nil && !host.Closed(m.hub.Done)
}

func notFound(err error, task string) error {
	if errors.Is(err, persistence.ErrNotFound) {
		return errNoTask(task)
	}
	return err
}

// checkCommand refuses values that are not JSON before they reach a task.
func checkCommand(cmd flow.Command) error {
	var v json.RawMessage
	var what string
	switch c := cmd.(type) {
	case flow.Signal:
		v, what = c.Value, "the signal's value"
		if !utf8.ValidString(c.Key) || containsControl(c.Key) {
			return flow.Errorf(flow.Invalid, "key must be printable text")
		}
	case flow.Answer:
		if v, what = c.Value, "the answer"; len(v) == 0 {
			return nil
		}
	case flow.Report:
		v, what = c.Output, "the result"
	case flow.Append:
		return checkItems(c.Items)
	default:
		return nil
	}
	if err := flow.CheckJSON(v); err != nil {
		return flow.Errorf(flow.Invalid, "%s: %v", what, err)
	}
	return nil
}

func checkItems(items []json.RawMessage) error {
	for _, item := range items {
		if err := flow.CheckJSON(item); err != nil {
			return flow.Errorf(flow.Invalid, "items: %v", err)
		}
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
