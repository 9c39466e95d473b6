package history

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/work"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *Handler) addLogRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-logs", Method: http.MethodGet, Path: "/v1/tasks/{task}/logs", Tag: "history",
		Summary: "List the output of a task's attempts",
		Text: "In the order of storage, also while the attempts run. A page may be shorter than its " +
			"limit, or empty, and still have next."}, h.listLogs)
	route.Register(rt, route.Operation{ID: "stream-logs", Method: http.MethodGet, Path: "/v1/tasks/{task}/logs/stream", Tag: "history",
		Summary: "Follow the output of a task's attempts",
		Text: "Server-sent events, from any member: each message is a line, and its ID is the " +
			"position to resume from (Last-Event-ID). Lines arrive at most about a second after " +
			"they were printed. The last message has the type end and contains the task's " +
			"outcome; the client should close the stream after it."}, h.streamLogs)
	h.describeStream("/v1/tasks/{task}/logs/stream",
		"OK; data of each message is a LogEntry, of the message with the type end an End",
		route.SchemaOf[wire.LogEntry])
}

// LogPick selects lines. Absent fields do not filter.
type LogPick struct {
	catalog.TaskPath
	Job     string `query:"job" maxLength:"20000" doc:"ID of the job."`
	Node    string `query:"node" maxLength:"256" doc:"Key of the node; with its path for a node of an inner flow, such as order/ship."`
	Unit    int    `query:"unit" minimum:"-1" default:"-1" doc:"Index of the unit, from 0; -1 = all."`
	Attempt int    `query:"attempt" minimum:"0" doc:"Number of the attempt, from 1; 0 = all."`
	Stream  string `query:"stream" enum:"log,stdout,stderr" doc:"Stream of the lines."`
}

type logsInput struct {
	LogPick
	After string `query:"after" maxLength:"40" doc:"ID of the last known line; absent = from the beginning."`
	Limit int    `query:"limit" minimum:"1" maximum:"5000" default:"1000" doc:"Maximum number of lines."`
}

// logReads bounds the reads of the store for one page when few lines match.
const logReads = 16

func (h *Handler) listLogs(ctx context.Context, in *logsInput) (*route.Response[wire.Page[wire.LogEntry]], error) {
	from, err := ParsePosition("query.after", in.After)
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
		if page.Items, cutOff = route.CutPage(append(page.Items, lines.matchingEntries(parts)...), in.Limit); cutOff {
			page.Next = page.Items[len(page.Items)-1].ID
			return &route.Response[wire.Page[wire.LogEntry]]{Body: page}, nil
		}
		if !more {
			return &route.Response[wire.Page[wire.LogEntry]]{Body: page}, nil
		}
		page.Next = stream.After(lines.Filter.After).String()
		if size := sizeOf(page.Items); size > pageBytes {
			break
		}
	}
	return &route.Response[wire.Page[wire.LogEntry]]{Body: page}, nil
}

func sizeOf(list []wire.LogEntry) (size int) {
	for i := range list {
		size += len(list[i].Text) + len(list[i].Job)
	}
	return size
}

type streamLogsInput struct {
	LogPick
	LastEventID string `header:"Last-Event-ID" maxLength:"40" doc:"ID of the last received line; browsers send it automatically."`
	After       string `query:"after" maxLength:"40" doc:"Alternative to Last-Event-ID, for the first connection."`
}

// streamLogs answers with a stream of log lines. It returns an error before the stream starts if
// the task does not exist.
func (h *Handler) streamLogs(ctx context.Context, in *streamLogsInput) (*huma.StreamResponse, error) {
	where, text := "query.after", in.After
	if in.LastEventID != "" {
		where, text = "header.Last-Event-ID", in.LastEventID
	}
	from, err := ParsePosition(where, text)
	if err != nil {
		return nil, err
	}
	lines, err := h.logLines(ctx, &in.LogPick, from)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		x := route.ExchangeOf(c.Context())
		st := &EventFeed{Source: h.Feeds, Task: in.Task}
		_, err := stream.ServeSSE(x.Writer, x.Request, h.Heartbeat,
			func(ctx context.Context, to stream.Listener) error { return st.streamLogs(ctx, to, lines) })
		if err != nil {
			h.Logger.Error("log stream interrupted", "error", err, "task", in.Task, "request", api.RequestID(c.Context()))
		}
	}}, nil
}

// streamLogs sends log lines until the task has ended or was deleted.
func (st *EventFeed) streamLogs(ctx context.Context, to stream.Listener, lines *logLines) error {
	if err := to.Open(); err != nil {
		return err
	}
	troubled := st.noteTroubleUnlessDeleted(ctx, to)
	over := func(ctx context.Context) (bool, error) {
		task, err := st.Source.Store.Task(ctx, st.Task)
		return err == nil && flow.TaskStatus(task.Status).Ended(), err
	}
	err := api.FollowLog(ctx, &lines.LogReader, over, troubled, func(parts []api.LogPart) error {
		st.inTrouble = false
		batch := stream.Batch{To: to}
		for _, e := range lines.matchingEntries(parts) {
			if err := batch.Add(stream.Message{ID: e.ID, Data: EncodeLine(&e)}); err != nil {
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

// logLines reads matching lines after a position.
type logLines struct {
	api.LogReader
	pick LogPick
	from stream.Position
}

func (h *Handler) logLines(ctx context.Context, pick *LogPick, from stream.Position) (*logLines, error) {
	if _, err := h.Store.Task(ctx, pick.Task); err != nil {
		return nil, catalog.LocateTaskError(pick.Task, err)
	}
	f := persistence.LogFilter{Task: pick.Task, After: from.Since()}
	if pick.Job != "" {
		task, at, err := work.ParseJobID(pick.Job)
		if err != nil || task != pick.Task {
			return nil, route.NewNotFoundError("query.job", "check the id", "the task has no job %.300q", pick.Job)
		}
		f.Job = flow.JobID(task, at)
	}
	return &logLines{LogReader: api.LogReader{Store: h.Store, Filter: f}, pick: *pick, from: from}, nil
}

// matchingEntries returns the matching lines of parts.
func (l *logLines) matchingEntries(parts []api.LogPart) (list []wire.LogEntry) {
	for i := range parts {
		p := &parts[i]
		_, at, err := flow.ParseJobID(p.Job)
		if err != nil || !l.pick.matchesAddress(at) {
			continue
		}
		missing := p.Missing
		if l.from.Covers(p.Number, 0) { // the line was sent before
			missing = persistence.LogSize{}
		}
		for n, said := range p.Lines {
			if l.from.Covers(p.Number, n) || l.pick.Stream != "" && l.pick.Stream != said.Stream {
				continue
			}
			text, ended := strings.CutSuffix(said.Text, "\n")
			e := wire.LogEntry{ID: stream.Position{Seq: p.Number, Index: n}.String(), Job: p.Job, Place: render.ToPlace(at),
				LogLine: wire.LogLine{At: wire.Millis(said.At), Stream: said.Stream, Text: text, Part: !ended}}
			if missing.Chars > 0 {
				e.Omitted, missing = &wire.OmittedLog{Lines: missing.Lines, Characters: missing.Chars}, persistence.LogSize{}
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
