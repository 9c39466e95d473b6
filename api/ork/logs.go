package ork

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

// serveLogs tells what a task has printed, each line with the stream that it came from; with
// follow, what it prints, until it has ended.
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

// taskLog is what is read of the logs of a run.
type taskLog struct {
	store   persistence.Logs
	run     string
	of      *runTask
	attempt int // 0 = all
	after   int64
	open    logSource // whose line has not ended yet
}

// logSource is a stream of an attempt; the zero one is none.
type logSource struct{ job, stream string }

// matchesAttempt reports whether an attempt is one that is asked for. That is not known of one that
// has begun since the task was read, while the one that is asked for has not.
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

// logOf reads which log is asked for.
func (d *dialect) logOf(r *http.Request) (*taskLog, error) {
	t, attempt, err := d.findLogTask(r.Context(), r)
	if err != nil {
		return nil, err
	}
	return &taskLog{run: d.runID(r), of: t, attempt: attempt}, nil
}

// findLogTask is the task that a request names, and which of its attempts; 0 = all.
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

// logParts is how many chunks of a log are read at once.
const logParts = 32

// writeNew tells what there is behind what was told before.
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
				return nil // the task is to be read again first
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

// writePart writes lines with their streams. A line that has no end yet goes on where its stream
// does, and ends where another one prints: long lines are kept in pieces.
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

// logPause is how often a log that is followed is looked at.
const logPause = 150 * time.Millisecond

// followLog tells what comes until it is over. What was printed last may be stored a moment later
// than the end.
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
			return nil // the answer has begun: there is nobody to tell
		}
		last = ended
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// logOver reads the task again, and says whether nothing more will be printed, unless the run is
// retried.
func (d *dialect) logOver(ctx context.Context, r *http.Request, l *taskLog) (bool, error) {
	t, attempt, err := d.findLogTask(ctx, r)
	if err != nil {
		return false, err
	}
	l.of = t
	return t.Status != pending && t.Status != paused && t.Status != dispatched && t.Status != running || attempt > 0 && attempt < t.Attempt, nil
}
