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

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/persistence"
)

// Do gives a command to a task and answers when what it did is stored. A request id makes it safe to
// send it again; without one it gets one, where it is needed, that covers what the member itself repeats.
func (m *Member) Do(ctx context.Context, task string, cmd flow.Command, request string) error {
	_, err := m.Tell(ctx, task, cmd, request)
	return err
}

// Tell is Do for those who want to know what the command led to at once. Without events it changed
// nothing: it came late, or again.
func (m *Member) Tell(ctx context.Context, task string, cmd flow.Command, request string) ([]flow.Event, error) {
	if err := checkCommand(cmd); err != nil {
		return nil, err
	}
	if request == "" && once(cmd) {
		request = uuid.NewString()
	}
	a, err := m.ask(ctx, task, cmd, request)
	return a.events, err
}

// ask gives a command to a task and returns what it answers.
func (m *Member) ask(ctx context.Context, task string, cmd flow.Command, request string) (answer, error) {
	if err := m.admit(cmd); err != nil {
		return answer{}, err
	}
	a, err := m.call(ctx, cmd, func(reply func(answer)) {
		m.tell(m.tasks, &command{task: task, cmd: cmd, request: request, reply: reply})
	})
	if err != nil {
		return answer{}, err
	}
	return a, a.err
}

// once says whether a command would do something the second time, too. Others need no request id, and a
// task has few to remember.
func once(cmd flow.Command) bool {
	switch cmd.(type) {
	case flow.Signal, flow.Pause, flow.Resume, flow.Append, flow.RetryTask:
		return true
	}
	return false
}

// call sends a request and waits for its answer.
func (m *Member) call(ctx context.Context, cmd flow.Command, send func(reply func(answer))) (answer, error) {
	done := make(chan answer, 1)
	send(m.enter(cmd, func(a answer) { done <- a }))
	return answerOf(ctx, m, done, nil)
}

// Poll claims queue jobs for a poller. It answers with none when nothing came within Wait.
func (m *Member) Poll(ctx context.Context, p Poll) ([]Claimed, error) {
	if err := m.here(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if m.cfg.Workers != nil {
		m.cfg.Workers.Polled(p.Worker)
	}
	done := make(chan []Claimed, 1)
	w := newPoller(p, func(got []Claimed) { done <- got })
	m.tell(m.sessions, w)
	timeUp := make(chan struct{})
	if p.Wait > 0 {
		defer m.cfg.Host.Clock.AfterFunc(p.Wait, func() { close(timeUp) })()
	}
	got, err := answerOf(ctx, m, done, timeUp)
	if errors.Is(err, errTimeUp) {
		m.tell(m.sessions, stopPoll{poller: w})
		got, err = answerOf(ctx, m, done, nil)
	}
	if err != nil {
		m.tell(m.sessions, leavePoll{w})
	}
	return got, err
}

// maxPollNames bounds how many services a poll may name, and how many labels.
const maxPollNames = 1000

// check refuses names that a store could neither keep nor look for, and more of them than a poller can mean.
func (p *Poll) check() error {
	return cmp.Or(flow.CheckName("the worker's id", p.Worker),
		checkNames("services", "the service", p.Services), checkNames("labels", "the label", p.Labels))
}

func checkNames(what, each string, names []string) error {
	if len(names) > maxPollNames {
		return flow.Errorf(flow.Invalid, "the poll names %d %s, more than the %d there may be: name those of this worker", len(names), what, maxPollNames)
	}
	for _, name := range names {
		if err := flow.CheckName(each, name); err != nil {
			return err
		}
	}
	return nil
}

// Complete reports the end of a job. A late or repeated report is acknowledged and changes nothing.
func (m *Member) Complete(ctx context.Context, job string, r flow.Report) error {
	task, at, err := flow.ParseJobID(job)
	if err != nil {
		return err
	}
	r.Address, r.Poller = at, true
	return m.Do(ctx, task, r, "")
}

// Heartbeat prolongs a poller's claims, all at once, and names the jobs that nobody waits for any longer.
func (m *Member) Heartbeat(ctx context.Context, worker string, jobs []string, token string) (canceled []string, err error) {
	return m.Extend(ctx, worker, jobs, token, 0)
}

// Extend is Heartbeat for a time of the poller's choice, from now on; 0 = as long as a claim holds.
func (m *Member) Extend(ctx context.Context, worker string, jobs []string, token string, by time.Duration) (canceled []string, err error) {
	cmds := make([]taskCommand, len(jobs))
	until := m.now() + m.cfg.Visibility.Milliseconds()
	for i, job := range jobs {
		task, at, err := flow.ParseJobID(job)
		if err != nil {
			return nil, err
		}
		cmds[i] = taskCommand{task, flow.Extend{Address: at, Worker: worker, Token: token, Until: until, MS: by.Milliseconds()}}
	}
	errs, err := m.doAll(ctx, cmds)
	if err != nil {
		return nil, err
	}
	for i, err := range errs {
		switch kind := flow.KindOf(err); {
		case kind == flow.Conflict || kind == flow.NotFound:
			canceled = append(canceled, jobs[i])
		case err != nil:
			return nil, err
		}
	}
	return canceled, nil
}

// Held is a claim as a poller knows it.
type Held struct{ Job, Token string }

// GiveBack returns claims, so that other pollers get the jobs at once. What is not claimed with that token
// (any longer) stays as it is.
func (m *Member) GiveBack(ctx context.Context, claims []Held) error {
	cmds := make([]taskCommand, len(claims))
	for i, c := range claims {
		task, at, err := flow.ParseJobID(c.Job)
		if err != nil {
			return err
		}
		cmds[i] = taskCommand{task, flow.GiveBack{Address: at, Token: c.Token}}
	}
	errs, err := m.doAll(ctx, cmds)
	if err != nil {
		return err
	}
	return cmp.Or(errs...)
}

// taskCommand is a command and the task it is for.
type taskCommand struct {
	task string
	cmd  flow.Command
}

// together bounds how many commands of one request are on their way at once.
const together = 500

// doAll gives commands that may be repeated to many tasks, and tells how each was answered.
func (m *Member) doAll(ctx context.Context, cmds []taskCommand) ([]error, error) {
	if err := m.here(); err != nil {
		return nil, err
	}
	errs := make([]error, 0, len(cmds))
	for group := range slices.Chunk(cmds, together) {
		if err := m.admit(group[0].cmd); err != nil {
			return nil, err
		}
		answers, err := m.doGroup(ctx, group)
		if err != nil {
			return nil, err
		}
		errs = append(errs, answers...)
	}
	return errs, nil
}

func (m *Member) doGroup(ctx context.Context, group []taskCommand) ([]error, error) {
	pending := make([]chan answer, len(group))
	for i, c := range group {
		done := make(chan answer, 1)
		pending[i] = done
		m.tell(m.tasks, &command{task: c.task, cmd: c.cmd, reply: m.enter(c.cmd, func(a answer) { done <- a })})
	}
	errs := make([]error, len(group))
	for i, done := range pending {
		a, err := answerOf(ctx, m, done, nil)
		if err != nil {
			return nil, err
		}
		errs[i] = a.err
	}
	return errs, nil
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
	o, err := answerOf(ctx, m, done, nil)
	if err != nil {
		m.tell(m.tasks, stopWait{task, w})
		return "", err
	}
	return o.status, o.err
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
			rows, err := m.store.Rows(ctx, task, after, watched)
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

// Appears waits until there is a task, for those who know its id before it has been started.
func (m *Member) Appears(ctx context.Context, task string) error {
	grown, stop := m.hub.watch(task)
	defer stop()
	for {
		if _, err := m.store.Task(ctx, task); !errors.Is(err, persistence.ErrNotFound) {
			return err
		}
		if !m.waitGrown(ctx, grown) {
			return cmp.Or(ctx.Err(), error(errLeaving))
		}
	}
}

// watched is how much of a journal a watcher reads at once, and keeps until all of it is taken.
var watched = persistence.Part{Rows: 200, Bytes: 256 << 10}

// slowSweep is how often a watcher looks without having been told to.
const slowSweep = 10 * time.Second

func (m *Member) waitGrown(ctx context.Context, grown <-chan struct{}) bool {
	timeUp := make(chan struct{})
	defer m.cfg.Host.Clock.AfterFunc(slowSweep, func() { close(timeUp) })()
	m.park(func() bool { return len(grown) > 0 || closed(timeUp) || ctx.Err() != nil || closed(m.hub.done) })
	select {
	case <-grown:
	case <-timeUp:
	case <-ctx.Done():
	case <-m.hub.done:
	}
	return ctx.Err() == nil && !closed(m.hub.done)
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
	if !expr.Valid(v) || !utf8.Valid(v) {
		return errors.New("is no valid JSON in UTF-8")
	}
	return nil
}
