package orkhttp

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// serveLogs returns the output of a task, each line with its stream. With follow it continues until
// the task has ended.
func (d *dialect) serveLogs(w http.ResponseWriter, r *http.Request) error {
	l, err := d.logOf(r)
	if err != nil {
		return err
	}
	l.store = d.Store
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if follow, _ := strconv.ParseBool(r.URL.Query().Get("follow")); !follow {
		return l.writeNew(r.Context(), w)
	}
	ctx, leave := stream.Stay(w, r)
	defer leave()
	return l.followLog(ctx, w, http.NewResponseController(w), func(ctx context.Context) (bool, error) { return d.logOver(ctx, r, l) })
}

// taskLog is a reader of the logs of a run's task.
type taskLog struct {
	store   persistence.Logs
	run     string
	of      *runTask
	attempt int // 0 = all
	after   int64
	open    logSource // the source of a line that has not ended yet
}

// logSource is a stream of an attempt. The zero value means no stream.
type logSource struct{ job, stream string }

// matchesAttempt reports whether an attempt is a requested attempt. If the requested attempt has
// not started, this is unknown for attempts that started after the task was read.
func (l *taskLog) matchesAttempt(a flow.Address) (yes, known bool) {
	switch all := l.of.attempts; {
	case a.Scope != "" || a.Node != l.of.key || a.Unit != l.of.unit:
		return false, true
	case l.attempt == 0:
		return true, true
	case l.attempt > len(all):
		return false, slices.Contains(all, a)
	default:
		return all[l.attempt-1] == a, true
	}
}

// logOf returns the requested log.
func (d *dialect) logOf(r *http.Request) (*taskLog, error) {
	t, attempt, err := d.findLogTask(r.Context(), r)
	if err != nil {
		return nil, err
	}
	return &taskLog{run: d.runID(r), of: t, attempt: attempt}, nil
}

// findLogTask returns the task that a request names, and the attempt. The attempt is 0 for all
// attempts.
func (d *dialect) findLogTask(ctx context.Context, r *http.Request) (*runTask, int, error) {
	id, name := d.runID(r), r.PathValue("name")
	h, err := d.Reader.History(ctx, id)
	if err != nil {
		return nil, 0, noRun(id, err)
	}
	numbers := map[string]int{}
	for _, field := range []string{"index", "attempt"} {
		text := cmp.Or(r.URL.Query().Get(field), "0")
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, 0, flow.Errorf(flow.Invalid, "%s must be a whole number of at least 0, is %.40q", field, text)
		}
		numbers[field] = n
	}
	for _, t := range tasksOf(h) {
		if t.Name != name || t.ParallelIndex != nil && t.unit != numbers["index"] && replicatedNode(h.State.Plan) == nil {
			continue
		}
		if numbers["attempt"] > max(t.Attempt, 1) {
			return nil, 0, flow.Errorf(flow.NotFound, "task %.140q has had %d attempts", name, t.Attempt)
		}
		return &t, numbers["attempt"], nil
	}
	return nil, 0, flow.Errorf(flow.NotFound, "run %.140q has no task %.140q with the index %d", id, name, numbers["index"])
}

// logParts is the number of chunks of a log that are read at once.
const logParts = 32

// writeNew writes the lines that were not written before.
func (l *taskLog) writeNew(ctx context.Context, w io.Writer) error {
	for {
		parts, err := l.store.ReadLog(ctx, persistence.LogFilter{Task: l.run, After: l.after, Limit: logParts})
		if err != nil {
			return err
		}
		for i := range parts {
			_, a, err := flow.ParseJobID(parts[i].Job)
			yes, known := l.matchesAttempt(a)
			if !known && err == nil {
				return nil // the task has to be read again first
			}
			l.after = parts[i].Number
			if !yes || err != nil {
				continue
			}
			if err := l.writePart(w, &parts[i]); err != nil {
				return stream.ErrGone
			}
		}
		if len(parts) < logParts {
			return nil
		}
	}
}

// writePart writes lines with their streams. Long lines are stored in pieces: a line without an end
// continues with the next chunk of its stream. The line is ended when another stream prints.
func (l *taskLog) writePart(w io.Writer, p *persistence.LogPart) error {
	var b strings.Builder
	if p.Oldest {
		b.WriteString(api.CutNote(p.Before))
	}
	for _, line := range p.Lines {
		from := logSource{p.Job, line.Stream}
		if l.open != from {
			if l.open != (logSource{}) {
				b.WriteByte('\n')
			}
			b.WriteString(line.Stream + ": ")
		}
		b.WriteString(line.Text)
		if l.open = from; strings.HasSuffix(line.Text, "\n") {
			l.open = logSource{}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// logPause is the pause between two reads of a followed log.
const logPause = 150 * time.Millisecond

// followLog writes new lines until over returns true. The last output may be stored a moment after
// the end.
func (l *taskLog) followLog(ctx context.Context, w io.Writer, c *http.ResponseController, over func(context.Context) (bool, error)) error {
	tick := time.NewTicker(logPause)
	defer tick.Stop()
	for last := false; ; {
		ended, err := over(ctx)
		if err == nil {
			err = l.writeNew(ctx, w)
		}
		if err == nil {
			err = c.Flush()
		}
		if err != nil || last && ended {
			return nil // the answer has begun, so the error cannot be sent
		}
		last = ended
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// logOver reads the task again and reports whether its output is complete, unless the run is
// retried.
func (d *dialect) logOver(ctx context.Context, r *http.Request, l *taskLog) (bool, error) {
	t, attempt, err := d.findLogTask(ctx, r)
	if err != nil {
		return false, err
	}
	l.of = t
	return t.Status != pending && t.Status != paused && t.Status != dispatched &&
		t.Status != running || attempt > 0 && attempt < t.Attempt, nil
}
