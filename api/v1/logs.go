package v1

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *historyHandler) addLogRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "list-logs", method: http.MethodGet, path: "/v1/tasks/{task}/logs", tag: "history",
		summary: "Read what a task's attempts have printed",
		text: "In the order in which it was stored, also while they run. A page may be " +
			"shorter than asked for, or empty, and still have a next one."}, h.listLogs)
	registerOperation(rt, apiOperation{id: "stream-logs", method: http.MethodGet, path: "/v1/tasks/{task}/logs/stream", tag: "history",
		summary: "Follow what a task's attempts print",
		text: "Server-sent events, from any member: each message is a line, its id the place to " +
			"go on from (Last-Event-ID). Lines come about a second after they were printed, at most. " +
			"The last message has the type end and says how the task ended; after it a client should close the stream."}, h.streamLogs)
	h.describeStream("/v1/tasks/{task}/logs/stream",
		"OK; data of each message is a LogEntry, of the message with the type end an End",
		refTo[wire.LogEntry])
}

// LogPick selects lines. Absent fields match everything.
type LogPick struct {
	TaskPath
	Job     string `query:"job" maxLength:"20000" doc:"only of this job"`
	Node    string `query:"node" maxLength:"256" doc:"only of this node; one of a flow inside has its path before it, such as order/ship"`
	Unit    int    `query:"unit" minimum:"-1" default:"-1" doc:"only of this unit, from 0"`
	Attempt int    `query:"attempt" minimum:"0" doc:"only of this attempt, from 1"`
	Stream  string `query:"stream" enum:"log,stdout,stderr" doc:"only what was printed there"`
}

type logsInput struct {
	LogPick
	After string `query:"after" maxLength:"40" doc:"id of the last line that is known; absent = from the beginning"`
	Limit int    `query:"limit" minimum:"1" maximum:"5000" default:"1000" doc:"how many lines at most"`
}

// logReads bounds the reads of the store for one page, if few lines match.
const logReads = 16

func (h *historyHandler) listLogs(ctx context.Context, in *logsInput) (*bodyResponse[wire.Page[wire.LogEntry]], error) {
	from, err := parsePosition("query.after", in.After)
	if err != nil {
		return nil, err
	}
	lines, err := h.logLines(ctx, &in.LogPick, from)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.LogEntry]{Items: []wire.LogEntry{}}
	for range logReads {
		parts, more, err := lines.Next(ctx)
		if err != nil {
			return nil, err
		}
		var cutOff bool
		if page.Items, cutOff = cutPage(append(page.Items, lines.matchingEntries(parts)...), in.Limit); cutOff {
			page.Next = page.Items[len(page.Items)-1].ID
			return &bodyResponse[wire.Page[wire.LogEntry]]{page}, nil
		}
		if !more {
			return &bodyResponse[wire.Page[wire.LogEntry]]{page}, nil
		}
		page.Next = stream.After(lines.Filter.After).String()
		if size := sizeOf(page.Items); size > pageBytes {
			break
		}
	}
	return &bodyResponse[wire.Page[wire.LogEntry]]{page}, nil
}

func sizeOf(list []wire.LogEntry) (size int) {
	for i := range list {
		size += len(list[i].Text) + len(list[i].Job)
	}
	return size
}

type streamLogsInput struct {
	LogPick
	LastEventID string `header:"Last-Event-ID" maxLength:"40" doc:"id of the last line that was received; browsers send it by themselves"`
	After       string `query:"after" maxLength:"40" doc:"the same, for the first connection"`
}

// streamLogs returns an error before it starts the stream if there is no such task.
func (h *historyHandler) streamLogs(ctx context.Context, in *streamLogsInput) (*huma.StreamResponse, error) {
	where, text := "query.after", in.After
	if in.LastEventID != "" {
		where, text = "header.Last-Event-ID", in.LastEventID
	}
	from, err := parsePosition(where, text)
	if err != nil {
		return nil, err
	}
	lines, err := h.logLines(ctx, &in.LogPick, from)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		x := c.Context().Value(exchangeKey{}).(httpExchange)
		st := &eventFeed{source: h.feeds, task: in.Task}
		_, err := stream.ServeSSE(x.w, x.r, h.heartbeat,
			func(ctx context.Context, to stream.Listener) error { return st.streamLogs(ctx, to, lines) })
		if err != nil {
			h.logger.Error("a stream of logs broke off", "error", err, "task", in.Task, "request", api.RequestID(c.Context()))
		}
	}}, nil
}

// streamLogs sends lines until the task has ended or was deleted.
func (st *eventFeed) streamLogs(ctx context.Context, to stream.Listener, lines *logLines) error {
	if err := to.Open(); err != nil {
		return err
	}
	troubled := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if api.Missing(err) {
			return err
		}
		return st.noteTrouble(ctx, to, err)
	}
	over := func(ctx context.Context) (bool, error) {
		task, err := st.source.store.Task(ctx, st.task)
		return err == nil && flow.TaskStatus(task.Status).Ended(), err
	}
	err := api.FollowLog(ctx, &lines.LogReader, over, troubled, func(parts []api.LogPart) error {
		st.inTrouble = false
		batch := stream.Batch{To: to}
		for _, e := range lines.matchingEntries(parts) {
			if err := batch.Add(stream.Message{ID: e.ID, Data: jsonLine(&e)}); err != nil {
				return err
			}
		}
		return batch.Send()
	})
	if err == nil {
		err = st.sendEnd(ctx, to, troubled)
	}
	if api.Missing(err) {
		return nil // the task was deleted
	}
	return err
}

// logLines reads matching lines that follow a position.
type logLines struct {
	api.LogReader
	pick LogPick
	from stream.Position
}

func (h *historyHandler) logLines(ctx context.Context, pick *LogPick, from stream.Position) (*logLines, error) {
	if _, err := h.store.Task(ctx, pick.Task); err != nil {
		return nil, noTask(pick.Task, err)
	}
	f := persistence.LogFilter{Task: pick.Task, After: from.Since()}
	if pick.Job != "" {
		task, at, err := parseJob(pick.Job)
		if err != nil || task != pick.Task {
			return nil, newNotFoundError("query.job", "check the id", "the task has no job %.300q", pick.Job)
		}
		f.Job = flow.JobID(task, at)
	}
	return &logLines{LogReader: api.LogReader{Store: h.store, Filter: f}, pick: *pick, from: from}, nil
}

// matchingEntries returns the lines of parts that match.
func (l *logLines) matchingEntries(parts []api.LogPart) (list []wire.LogEntry) {
	for i := range parts {
		p := &parts[i]
		_, at, err := flow.ParseJobID(p.Job)
		if err != nil || !l.pick.matchesAddress(at) {
			continue
		}
		missing := p.Missing
		if l.from.Covers(p.Number, 0) { // it was sent before
			missing = persistence.LogSize{}
		}
		for n, said := range p.Lines {
			if l.from.Covers(p.Number, n) || l.pick.Stream != "" && l.pick.Stream != said.Stream {
				continue
			}
			text, ended := strings.CutSuffix(said.Text, "\n")
			e := wire.LogEntry{ID: stream.Position{Seq: p.Number, Index: n}.String(), Job: p.Job, Place: toPlace(at),
				LogLine: wire.LogLine{At: wire.Millis(said.At), Stream: said.Stream, Text: text, Part: !ended}}
			if missing.Chars > 0 {
				e.Missing, missing = &wire.LogMissing{Lines: missing.Lines, Chars: missing.Chars}, persistence.LogSize{}
			}
			list = append(list, e)
		}
	}
	return list
}

func (p *LogPick) matchesAddress(at flow.Address) bool {
	return (p.Node == "" || p.Node == at.Node || p.Node == at.Step()) && (p.Unit < 0 ||
		p.Unit == at.Unit) && (p.Attempt == 0 || p.Attempt == at.Attempt)
}
