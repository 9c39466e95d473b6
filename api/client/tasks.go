package client

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// Start starts a task. Without an idempotency key, the client generates one, so that a retry starts
// no second task.
func (c *Client) Start(ctx context.Context, s wire.StartRequest) (*wire.StartResult, error) {
	own := s.IdempotencyKey == "" && !s.DryRun
	if own {
		s.IdempotencyKey = crand.Text()
	}
	body, err := encodeBody(s)
	if err != nil {
		return nil, fmt.Errorf("starting a task of %s: %w", s.Flow, err)
	}
	started, err := doCall[wire.StartResult](ctx, c, apiCall{method: http.MethodPost, path: "/v1/tasks", body: body, kind: "application/json",
		repeatable: true, wait: waitDuration(s.WaitMS)})
	if err == nil && own {
		started.Created = true // an earlier try of this call may have started the task
	}
	return started, err
}

// waitDuration converts a wait time in milliseconds. It caps the value, so that a Duration can hold
// it; the server rejects such waits anyway.
func waitDuration(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt32)) * time.Millisecond
}

// TaskQuery selects tasks. Zero fields do not filter.
type TaskQuery struct {
	Paging
	Flow     string   // slug or id
	Flows    []string // any of these flows
	Version  int      // number of the version
	IDPrefix string   // prefix of the task ids
	// text in the error or a label, or prefix of the id
	Text string
	// beginning of the error without its numbers, as in Overview
	Failure                string
	Node                   string            // graph mode: the node of the cursor
	States                 []string          // any of these states; paused only alone
	Waits                  []string          // any of approval, signal, timer, manual
	Queued                 string            // a service; selects only tasks with jobs in its queue
	Labels                 map[string]string // all of them
	CreatedFrom, CreatedTo time.Time         // from inclusive, to exclusive
	EndedFrom, EndedTo     time.Time
	Shortest, Longest      time.Duration // duration from creation to end; selects ended tasks only
	Sort                   string        // created, -ended, ended; "" means -created (newest)
}

func (t TaskQuery) queryValues() url.Values {
	q := t.Paging.queryValues()
	setNonEmpty(q, "flow", t.Flow)
	for _, flow := range t.Flows {
		q.Add("flow", flow)
	}
	setNonEmpty(q, "id_prefix", t.IDPrefix)
	setNonEmpty(q, "q", t.Text)
	setNonEmpty(q, "error", t.Failure)
	setNonEmpty(q, "node", t.Node)
	setNonEmpty(q, "queued", t.Queued)
	setNonEmpty(q, "sort", t.Sort)
	for name, n := range map[string]int64{"version": int64(t.Version),
		"duration_min": t.Shortest.Milliseconds(), "duration_max": t.Longest.Milliseconds()} {
		if n > 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	for _, state := range t.States {
		q.Add("state", state)
	}
	for _, kind := range t.Waits {
		q.Add("waiting_for", kind)
	}
	for name, text := range t.Labels {
		q.Add("label", name+":"+text)
	}
	for name, at := range map[string]time.Time{"created_from": t.CreatedFrom,
		"created_to": t.CreatedTo, "ended_from": t.EndedFrom, "ended_to": t.EndedTo} {
		if !at.IsZero() {
			q.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return q
}

// CountTasks counts the tasks that Tasks would list, up to 10,000. by groups the counts by state,
// flow or label:NAME, with a limit for each group; "" means no groups.
func (c *Client) CountTasks(ctx context.Context, q TaskQuery, by string) (*wire.TaskCount, error) {
	q.Paging, q.Sort = Paging{}, ""
	query := q.queryValues()
	setNonEmpty(query, "group_by", by)
	return getJSON[wire.TaskCount](ctx, c, "/v1/tasks/count", query)
}

// Tasks searches tasks, newest first.
func (c *Client) Tasks(ctx context.Context, q TaskQuery) (*wire.Page[wire.TaskSummary], error) {
	return getJSON[wire.Page[wire.TaskSummary]](ctx, c, "/v1/tasks", q.queryValues())
}

// Task reads the current state of a task.
func (c *Client) Task(ctx context.Context, id string) (*wire.Task, error) {
	return getJSON[wire.Task](ctx, c, taskPath(id, ""), nil)
}

func taskPath(id, what string) string { return "/v1/tasks/" + url.PathEscape(id) + what }

// pollTime is how long one request of Wait may wait. Proxies may cut off longer requests.
const pollTime = 25 * time.Second

// WaitForStep waits until a step at the top level of a task has ended, and returns the step. step
// is NODE, or NODE#2 for the second visit; for a function, the name of a step. It returns an error
// if the task ends without the step.
func (c *Client) WaitForStep(ctx context.Context, id, step string) (*wire.Step, error) {
	q := url.Values{"wait_ms": {strconv.FormatInt(pollTime.Milliseconds(), 10)}, "wait_until": {step}}
	for {
		task, err := doCall[wire.Task](ctx, c, apiCall{method: http.MethodGet, path: taskPath(id, ""), query: q,
			repeatable: true, wait: pollTime})
		switch {
		case err != nil:
			return nil, err
		case task.Step != nil:
			return task.Step, nil
		case !task.EndedAt.IsZero():
			return nil, fmt.Errorf("the task %s is %s, and its step %s has not ended", id, task.State, step)
		}
	}
}

// Wait waits until a task has ended, and returns the task. It returns no error for a failed or
// canceled task.
func (c *Client) Wait(ctx context.Context, id string) (*wire.Task, error) {
	q := url.Values{"wait_ms": {strconv.FormatInt(pollTime.Milliseconds(), 10)}}
	for {
		t, err := doCall[wire.Task](ctx, c, apiCall{method: http.MethodGet, path: taskPath(id, ""),
			query: q, repeatable: true, wait: pollTime})
		if err != nil || !t.EndedAt.IsZero() {
			return t, err
		}
	}
}

type requestKey struct{}

// WithRequest sets the request id of commands with this context. Commands with the same id take
// effect once, even if different processes send them. Without WithRequest, each command gets its
// own id.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

func (c *Client) sendCommand(ctx context.Context, id, name string, body []byte) (*wire.TaskSummary, error) {
	return postCommand[wire.TaskSummary](ctx, c, id, name, body)
}

func postCommand[T any](ctx context.Context, c *Client, id, name string, body []byte) (*T, error) {
	return postRequest[T](ctx, c, apiCall{path: taskPath(id, "/"+name), body: body})
}

// postRequest sends a request with an id, so that it takes effect once.
func postRequest[T any](ctx context.Context, c *Client, r apiCall) (*T, error) {
	name, ok := ctx.Value(requestKey{}).(string)
	if !ok {
		name = crand.Text()
	}
	r.method, r.header, r.repeatable = http.MethodPost, http.Header{"Request-Id": {name}}, true
	if r.body != nil {
		r.kind = "application/json"
	}
	return doCall[T](ctx, c, r)
}

// postContent sends a command with a JSON body.
func postContent[T any](ctx context.Context, c *Client, id, name string, content any) (*T, error) {
	body, err := encodeBody(content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, id, err)
	}
	return postCommand[T](ctx, c, id, name, body)
}

// Cancel cancels a task. A task that has ended is not changed.
func (c *Client) Cancel(ctx context.Context, id string) (*wire.TaskSummary, error) {
	return c.sendCommand(ctx, id, "cancel", nil)
}

// CancelHow cancels a task gently or by force.
func (c *Client) CancelHow(ctx context.Context, id string, how wire.CancelRequest) (*wire.TaskSummary, error) {
	return postContent[wire.TaskSummary](ctx, c, id, "cancel", how)
}

// Retry makes a failed task continue at its failed steps.
func (c *Client) Retry(ctx context.Context, id string) (*wire.TaskSummary, error) {
	return c.sendCommand(ctx, id, "retry", nil)
}

// RetryStep makes a failed task of dag mode continue with one failed step, and with the steps that
// were skipped due to its failure.
func (c *Client) RetryStep(ctx context.Context, id, step string) (*wire.TaskSummary, error) {
	return postContent[wire.TaskSummary](ctx, c, id, "retry", wire.RetryRequest{Step: step})
}

// HoldStep prevents a step of dag mode from beginning.
func (c *Client) HoldStep(ctx context.Context, id string, step wire.StepName) (*wire.TaskSummary, error) {
	return postContent[wire.TaskSummary](ctx, c, id, "hold", step)
}

// ReleaseStep lets a held step begin.
func (c *Client) ReleaseStep(ctx context.Context, id string, step wire.StepName) (*wire.TaskSummary, error) {
	return postContent[wire.TaskSummary](ctx, c, id, "release", step)
}

// bulkTime is how long the server may wait for the answers of many tasks.
const bulkTime = 20 * time.Second

// Bulk retries, cancels, pauses or resumes many tasks. To continue, send Next of the result as
// Cursor.
func (c *Client) Bulk(ctx context.Context, b wire.BulkRequest) (*wire.BulkResult, error) {
	body, err := encodeBody(b)
	if err != nil {
		return nil, fmt.Errorf("%s many tasks: %w", b.Action, err)
	}
	return postRequest[wire.BulkResult](ctx, c, apiCall{path: "/v1/tasks/bulk", body: body, wait: bulkTime})
}

// Fork starts a task that continues from the history of another task. A dry run only predicts the
// new task.
func (c *Client) Fork(ctx context.Context, id string, f wire.ForkRequest) (*wire.ForkResult, error) {
	if f.IdempotencyKey == "" && !f.DryRun {
		f.IdempotencyKey = crand.Text()
	}
	return postContent[wire.ForkResult](ctx, c, id, "fork", f)
}

// Rerun starts a task that repeats another task from the beginning.
func (c *Client) Rerun(ctx context.Context, id string, r wire.RerunRequest) (*wire.RerunResult, error) {
	if r.IdempotencyKey == "" {
		r.IdempotencyKey = crand.Text()
	}
	return postContent[wire.RerunResult](ctx, c, id, "rerun", r)
}

// Append adds units to a fanout that has begun and returns their indexes.
func (c *Client) Append(ctx context.Context, id string, a wire.AppendUnits) (*wire.AppendedUnits, error) {
	return postContent[wire.AppendedUnits](ctx, c, id, "append", a)
}

// Complete ends a unit that has the route direct, with an output or an error.
func (c *Client) Complete(ctx context.Context, id string, u wire.CompleteRequest) (*wire.CompleteResult, error) {
	return postContent[wire.CompleteResult](ctx, c, id, "complete", u)
}

// Pause prevents new work of a task from starting. Work in flight continues.
func (c *Client) Pause(ctx context.Context, id string) (*wire.TaskSummary, error) {
	return c.sendCommand(ctx, id, "pause", nil)
}

// Resume lets a paused task continue.
func (c *Client) Resume(ctx context.Context, id string) (*wire.TaskSummary, error) {
	return c.sendCommand(ctx, id, "resume", nil)
}

// Signal sets a key of a task's shared state to a JSON value and wakes the steps that wait for it.
func (c *Client) Signal(ctx context.Context, id, key string, value json.RawMessage) (*wire.TaskSummary, error) {
	return postContent[wire.TaskSummary](ctx, c, id, "signal", wire.Signal{Key: key, Value: value, SentBy: c.opts.By})
}

// Compare compares the courses of two tasks, node by node.
func (c *Client) Compare(ctx context.Context, a, b string) (*wire.Comparison, error) {
	return getJSON[wire.Comparison](ctx, c, taskPath(a, "/compare/"+url.PathEscape(b)), nil)
}

// StepQuery selects steps of a task. Zero fields do not filter.
type StepQuery struct {
	Paging
	Scope  string // path of the scope; "" means the task's root
	Step   string // slug of the only step
	States []string
}

func (s StepQuery) queryValues() url.Values {
	q := s.Paging.queryValues()
	setNonEmpty(q, "scope", s.Scope)
	setNonEmpty(q, "step", s.Step)
	for _, state := range s.States {
		q.Add("state", state)
	}
	return q
}

// Steps lists the steps of a task, or of a scope in it.
func (c *Client) Steps(ctx context.Context, id string, q StepQuery) (*wire.Page[wire.Step], error) {
	return getJSON[wire.Page[wire.Step]](ctx, c, taskPath(id, "/steps"), q.queryValues())
}

// Units lists the units of a step's visit. visit 0 means the newest.
func (c *Client) Units(ctx context.Context, id string, q StepQuery, visit int) (*wire.Page[wire.Unit], error) {
	query := q.queryValues()
	if visit > 0 {
		query.Set("visit", strconv.Itoa(visit))
	}
	return getJSON[wire.Page[wire.Unit]](ctx, c, taskPath(id, "/units"), query)
}

// UnitStates returns the states of all units of a step's visit. visit 0 means the newest.
func (c *Client) UnitStates(ctx context.Context, id, scope, step string, visit int) (*wire.UnitStates, error) {
	q := url.Values{"step": {step}}
	setNonEmpty(q, "scope", scope)
	if visit > 0 {
		q.Set("visit", strconv.Itoa(visit))
	}
	return getJSON[wire.UnitStates](ctx, c, taskPath(id, "/units/states"), q)
}

// Events reads a task's history after an event, oldest first. after "" means from the beginning.
func (c *Client) Events(ctx context.Context, id, after string, limit int) (*wire.Page[wire.Event], error) {
	q := Paging{Limit: limit}.queryValues()
	setNonEmpty(q, "after", after)
	return getJSON[wire.Page[wire.Event]](ctx, c, taskPath(id, "/events"), q)
}

// Runs reads a task's attempts and steps, in order of their beginning.
func (c *Client) Runs(ctx context.Context, id string, p Paging) (*wire.Page[wire.Run], error) {
	return getJSON[wire.Page[wire.Run]](ctx, c, taskPath(id, "/runs"), p.queryValues())
}

// Digest returns the progress of the nodes in scopes of a task. The default scopes are the root,
// and the scope of compensations and clean-up.
func (c *Client) Digest(ctx context.Context, id string, scopes ...string) (*wire.Digest, error) {
	return getJSON[wire.Digest](ctx, c, taskPath(id, "/digest"), url.Values{"scope": scopes})
}

// DigestAt returns the Digest of a task in its state after the journal row with the given Seq.
func (c *Client) DigestAt(ctx context.Context, id string, row int64, scopes ...string) (*wire.Digest, error) {
	return getJSON[wire.Digest](ctx, c, taskPath(id, "/digest"), url.Values{"scope": scopes, "at_seq": {strconv.FormatInt(row, 10)}})
}

// TimelineQuery selects a part of a timeline. Zero fields select all.
type TimelineQuery struct {
	Scope    string // path of the scope; "" means the task's root
	From, To time.Time
	Bins     int
}

func (q TimelineQuery) queryValues() url.Values {
	values := url.Values{}
	setNonEmpty(values, "scope", q.Scope)
	for name, at := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !at.IsZero() {
			values.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Bins > 0 {
		values.Set("bins", strconv.Itoa(q.Bins))
	}
	return values
}

// Timeline returns when each visit of a scope started and ended.
func (c *Client) Timeline(ctx context.Context, id string, q TimelineQuery) (*wire.Timeline, error) {
	return getJSON[wire.Timeline](ctx, c, taskPath(id, "/timeline"), q.queryValues())
}

// Value reads one complete value of a task. of names the value, for example params, shared, result
// or output.
func (c *Client) Value(ctx context.Context, id, of string, at ValueQuery) (json.RawMessage, error) {
	q := at.queryValues()
	q.Set("of", of)
	value, err := getJSON[json.RawMessage](ctx, c, taskPath(id, "/value"), q)
	if err != nil {
		return nil, err
	}
	return *value, nil
}

// ValueQuery selects the step or unit of a value. The zero value selects the task itself.
type ValueQuery struct {
	Key         string // key of shared
	Scope, Step string
	Visit       int  // number of the visit; 0 means the newest
	Unit        *int // index of the unit; nil means the step itself
	Attempt     int  // number of the attempt; 0 means the unit itself
	Pointer     string
}

func (v ValueQuery) queryValues() url.Values {
	q := url.Values{}
	setNonEmpty(q, "key", v.Key)
	setNonEmpty(q, "scope", v.Scope)
	setNonEmpty(q, "step", v.Step)
	setNonEmpty(q, "pointer", v.Pointer)
	if v.Unit != nil {
		q.Set("unit", strconv.Itoa(*v.Unit))
	}
	for name, n := range map[string]int{"visit": v.Visit, "attempt": v.Attempt} {
		if n > 0 {
			q.Set(name, strconv.Itoa(n))
		}
	}
	return q
}

// Waiting returns the reasons why a task waits.
func (c *Client) Waiting(ctx context.Context, id string) (*wire.WaitReasons, error) {
	return getJSON[wire.WaitReasons](ctx, c, taskPath(id, "/waiting"), nil)
}

// Job reads a job, even after its end.
func (c *Client) Job(ctx context.Context, id string) (*wire.Job, error) {
	return getJSON[wire.Job](ctx, c, "/v1/jobs/"+url.PathEscape(id), nil)
}

// Log reads the output of a job.
func (c *Client) Log(ctx context.Context, job string) (string, error) {
	log, err := getJSON[wire.Log](ctx, c, "/v1/jobs/"+url.PathEscape(job)+"/log", nil)
	if err != nil {
		return "", err
	}
	return log.Content, nil
}

// Jobs lists the jobs in the queues of some or all services, longest waiting first.
func (c *Client) Jobs(ctx context.Context, p Paging, services ...string) (*wire.Page[wire.WaitingJob], error) {
	q := p.queryValues()
	for _, service := range services {
		q.Add("service", service)
	}
	return getJSON[wire.Page[wire.WaitingJob]](ctx, c, "/v1/jobs", q)
}

// Queues returns the lengths of all queues that are not empty, in order of service.
func (c *Client) Queues(ctx context.Context) ([]wire.Queue, error) {
	return collectAll(func(cursor string) (*wire.Page[wire.Queue], error) {
		return getJSON[wire.Page[wire.Queue]](ctx, c, "/v1/queues", Paging{Cursor: cursor, Limit: largestPage}.queryValues())
	})
}

// WorkerQuery selects workers. Zero fields do not filter.
type WorkerQuery struct {
	Paging
	IDPrefix string // prefix of the worker ids
	Service  string // service that the workers offer
	State    string // online or offline
}

func (w WorkerQuery) queryValues() url.Values {
	q := w.Paging.queryValues()
	setNonEmpty(q, "id_prefix", w.IDPrefix)
	setNonEmpty(q, "service", w.Service)
	setNonEmpty(q, "state", w.State)
	return q
}

// Trace reads a task as spans, in the JSON that OpenTelemetry collectors accept.
func (c *Client) Trace(ctx context.Context, task string) (*wire.Trace, error) {
	return getJSON[wire.Trace](ctx, c, "/v1/tasks/"+url.PathEscape(task)+"/trace", nil)
}

// WorkerPage lists workers in order of their first registration.
func (c *Client) WorkerPage(ctx context.Context, q WorkerQuery) (*wire.Page[wire.Worker], error) {
	return getJSON[wire.Page[wire.Worker]](ctx, c, "/v1/workers", q.queryValues())
}

// Workers lists all workers in order of their first registration.
func (c *Client) Workers(ctx context.Context) ([]wire.Worker, error) {
	return collectAll(func(cursor string) (*wire.Page[wire.Worker], error) {
		return c.WorkerPage(ctx, WorkerQuery{Paging: Paging{Cursor: cursor, Limit: largestPage}})
	})
}

// Worker reads a worker.
func (c *Client) Worker(ctx context.Context, id string) (*wire.Worker, error) {
	return getJSON[wire.Worker](ctx, c, "/v1/workers/"+url.PathEscape(id), nil)
}

// Info returns the version of the server and the kind of its store.
func (c *Client) Info(ctx context.Context) (*wire.ServerInfo, error) {
	return getJSON[wire.ServerInfo](ctx, c, "/v1/info", nil)
}
