package listing

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Row is a row of a driver's result.
type Row interface{ Scan(dest ...any) error }

// Rows is a driver's result.
type Rows interface {
	Row
	Next() bool
	Err() error
}

// ScanTask reads Columns.
func ScanTask(row Row, t *persistence.TaskRow) error { return Scan(row, t) }

// Scan reads Columns and then the values of more.
func Scan(row Row, t *persistence.TaskRow, more ...any) error {
	var labels []byte
	var wait string
	dest := append(make([]any, 0, 28), &t.ID, &t.FlowID, &t.VersionID, &t.FlowName, &t.FlowSlug, &t.VersionNumber,
		&t.Status, &t.Cursor, &t.LastAction, &t.Error, &t.Paused, &t.Steps, &t.Followed, &t.EndedAt, &t.Waits, &wait,
		&labels, &t.Params, &t.BodyHash, &t.CreatedAt, &t.UpdatedAt)
	if err := row.Scan(append(dest, more...)...); err != nil {
		return err
	}
	if wait != "" {
		if err := json.Unmarshal([]byte(wait), &t.Wait); err != nil {
			return fmt.Errorf("the wait of task %s: %w", t.ID, err)
		}
	}
	if labels == nil {
		return nil
	}
	if err := json.Unmarshal(labels, &t.Labels); err != nil {
		return fmt.Errorf("labels of task %s: %w", t.ID, err)
	}
	return nil
}

// Counted is the number of tasks with one value in one part of a count.
type Counted struct {
	Part  int
	What  string
	Count int
}

// ScanCounted reads a part, a value and a count into c.
func ScanCounted(row Row, c *Counted) error { return row.Scan(&c.Part, &c.What, &c.Count) }

// ScanFlow reads id, slug, name, description, creation time, and whether it is a trial flow.
func ScanFlow(row Row, f *persistence.Flow) error {
	return row.Scan(&f.ID, &f.Slug, &f.Name, &f.Description, &f.CreatedAt, &f.Tried)
}

// ScanVersion reads id, flow, number, definition, status, hash and creation time.
func ScanVersion(row Row, v *persistence.Version) error {
	return row.Scan(&v.ID, &v.FlowID, &v.Number, &v.Definition, &v.Status, &v.Hash, &v.CreatedAt)
}

// ScanWorker reads id, address, type, services and labels as JSON, secret, load, last heartbeat,
// registration, last registration and last poll.
func ScanWorker(row Row, w *persistence.Worker) error {
	var services, labels []byte
	if err := row.Scan(&w.ID, &w.URL, &w.Type, &services, &labels, &w.Secret, &w.Load,
		&w.LastHeartbeat, &w.RegisteredAt, &w.JoinedAt, &w.PolledAt); err != nil {
		return err
	}
	if err := json.Unmarshal(services, &w.Services); err != nil {
		return err
	}
	return readLabels(labels, &w.Labels)
}

// ScheduleColumns are the columns that ScanSchedule reads.
const ScheduleColumns = "id, name, flow_id, revision, due_at, body"

// ScanSchedule reads ScheduleColumns.
func ScanSchedule(row Row, s *persistence.Schedule) error {
	var body []byte
	if err := row.Scan(&s.ID, &s.Name, &s.FlowID, &s.Revision, &s.Due, &body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, s); err != nil {
		return fmt.Errorf("the schedule %s: %w", s.Name, err)
	}
	return nil
}

// readLabels decodes the output of ListOfLabels.
func readLabels(text []byte, labels *[]string) error {
	if text == nil {
		return nil
	}
	return json.Unmarshal(text, labels)
}

// ScanRow reads sequence number, time and events.
func ScanRow(row Row, r *persistence.Row) error { return row.Scan(&r.Seq, &r.At, &r.Events) }

// ScanWake reads task and due time.
func ScanWake(row Row, w *persistence.Wake) error { return row.Scan(&w.Task, &w.Due) }

// ScanJob reads job, task, service, time, turn, size and labels.
func ScanJob(row Row, q *persistence.QueueRow) error {
	var labels []byte
	if err := row.Scan(&q.JobID, &q.Task, &q.Service, &q.EnqueuedAt, &q.Turn, &q.Size, &labels); err != nil {
		return err
	}
	return readLabels(labels, &q.Labels)
}

// ListOfLabels returns the stored form of the labels of a job or worker; nil for none.
func ListOfLabels(labels []string) *string {
	if len(labels) == 0 {
		return nil
	}
	return AsJSON(labels)
}

// AsJSON returns a list of texts as JSON.
func AsJSON(list []string) *string {
	b, _ := json.Marshal(append([]string{}, list...)) // texts never fail to marshal
	text := string(b)
	return &text
}

// Depth is the state of the queue of one service.
type Depth struct {
	Service string
	persistence.QueueStat
}

// ScanDepth reads service, number of jobs, number of their tasks, and the time of the oldest job.
func ScanDepth(row Row, d *Depth) error { return row.Scan(&d.Service, &d.Waiting, &d.Tasks, &d.Oldest) }

// ScanTaskMark reads the flow, id, status and creation time of a task.
func ScanTaskMark(row Row, m *persistence.TaskMark) error {
	return row.Scan(&m.Flow, &m.ID, &m.Status, &m.CreatedAt)
}

// ScanTaskEnd reads an id and a time.
func ScanTaskEnd(row Row, e *persistence.TaskEnd) error { return row.Scan(&e.ID, &e.EndedAt) }

// ShardCount is the number of tasks of a shard.
type ShardCount struct {
	Shard int
	persistence.ShardTasks
}

// ScanShardCount reads a shard and its counts.
func ScanShardCount(row Row, c *ShardCount) error { return row.Scan(&c.Shard, &c.Active, &c.Resting) }

// ScanValue reads a single column.
func ScanValue[T any](row Row, v *T) error { return row.Scan(v) }

// Collect returns all rows, each read with the given function.
func Collect[T any](rows Rows, read func(Row, *T) error) ([]T, error) {
	return CollectUntil(rows, read, nil)
}

// CollectUntil returns the rows up to and including the first for which enough is true. If enough
// is nil, it returns all rows.
func CollectUntil[T any](rows Rows, read func(Row, *T) error, enough func(*T) bool) ([]T, error) {
	list := []T{}
	for rows.Next() {
		var empty T
		list = append(list, empty)
		v := &list[len(list)-1]
		if err := read(rows, v); err != nil {
			return nil, err
		}
		if enough != nil && enough(v) {
			break
		}
	}
	return list, rows.Err()
}

// Labels returns the stored form of labels; nil for none.
func Labels(labels map[string]string) *string {
	if len(labels) == 0 {
		return nil
	}
	text, err := json.Marshal(labels)
	if err != nil {
		panic(err) // a map of strings never fails to marshal
	}
	s := string(text)
	return &s
}

// Wait returns the stored form of a wait; "" for none.
func Wait(w flow.Awaited) string {
	if w == (flow.Awaited{}) {
		return ""
	}
	text, _ := json.Marshal(w) // texts and numbers never fail to marshal
	return persistence.CleanText(string(text))
}

// PermitColumns are the columns that ScanPermit reads.
const PermitColumns = "task, holder, key, most, per_ms, when_full, urgency, fair, asked_at, turn, state, given_at, evicted"

// ScanPermit reads PermitColumns.
func ScanPermit(row Row, p *persistence.PermitRow) error {
	err := row.Scan(&p.Task, &p.Holder, &p.Key, &p.Limit, &p.PerMS, &p.Full, &p.Priority, &p.Fair,
		&p.AskedAt, &p.Turn, &p.State, &p.GivenAt, &p.Evicted)
	p.Priority = -p.Priority
	return err
}

// ScanPermitBefore reads PermitColumns and the number of waiting rows before the permit.
func ScanPermitBefore(row Row, p *persistence.PermitRow) error {
	err := row.Scan(&p.Task, &p.Holder, &p.Key, &p.Limit, &p.PerMS, &p.Full, &p.Priority, &p.Fair,
		&p.AskedAt, &p.Turn, &p.State, &p.GivenAt, &p.Evicted, &p.Before)
	p.Priority = -p.Priority
	return err
}

// LogColumns are the columns that ScanLog reads.
const LogColumns = "l.task, l.n, l.job, l.source, l.number, l.chars_before, l.lines_before, l.chars, l.lines, l.content"

// Log is a chunk of a log. Oldest reports whether it is the first kept chunk of its attempt.
type Log struct {
	persistence.LogRow
	Oldest bool
}

// ScanLog reads LogColumns and whether the chunk is the oldest of its attempt.
func ScanLog(row Row, l *Log) error {
	return row.Scan(&l.Task, &l.N, &l.Job, &l.Source, &l.Number, &l.Before.Chars, &l.Before.Lines,
		&l.After.Chars, &l.After.Lines, &l.Content, &l.Oldest)
}

// LogParts returns chunks as parts for readers.
func LogParts(list []Log) []persistence.LogPart {
	parts := make([]persistence.LogPart, len(list))
	for i := range list {
		parts[i] = list[i].Part(list[i].Oldest)
	}
	return parts
}

// StreamColumns are the columns that ScanStream reads.
const StreamColumns = "task, name, first, last, job, step, try, source, number, at, content"

// ScanStream reads StreamColumns.
func ScanStream(row Row, r *persistence.StreamRow) error {
	return row.Scan(&r.Task, &r.Name, &r.First, &r.Last, &r.Job, &r.Step, &r.Try, &r.Source, &r.Number, &r.At, &r.Content)
}

// StreamSizeColumns are the columns that ScanStreamSize reads.
const StreamSizeColumns = "name, length, bytes, ended"

// ScanStreamSize reads StreamSizeColumns.
func ScanStreamSize(row Row, s *persistence.StreamSize) error {
	return row.Scan(&s.Name, &s.Length, &s.Bytes, &s.Ended)
}

// ExternalColumns are the columns that ScanExternal reads.
const ExternalColumns = "task, job, n, service, id, data, memo, started_at, next_at, polls, failures, failing_at, pending, recalled"

// ScanExternal reads ExternalColumns.
func ScanExternal(row Row, r *persistence.ExternalRow) error {
	return row.Scan(&r.Task, &r.Job, &r.Index, &r.Service, &r.ID, (*[]byte)(&r.Data),
		(*[]byte)(&r.Memo), &r.StartedAt, &r.NextAt, &r.Polls, &r.Failures, &r.FailingAt,
		&r.Pending, &r.Recalled)
}
