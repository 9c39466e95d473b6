package api

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/persistence"
)

// What the families of routes have in common about logs.

// Lines are what a worker says about a job with a claim, as lines.
func Lines(s *wire.Said) []persistence.LogLine {
	now := time.Now().UnixMilli()
	list := make([]persistence.LogLine, len(s.Lines))
	for i, l := range s.Lines {
		list[i] = persistence.LogLine{At: now, Stream: lines.StreamNamed(l.Stream), Text: l.Text}
		if !l.At.IsZero() {
			list[i].At = l.At.UnixMilli()
		}
		if !l.Part {
			list[i].Text += "\n"
		}
	}
	return list
}

// TextLines are those of a text that is said at once. It need not end with its last line.
func TextLines(text string) (list []persistence.LogLine) {
	now := time.Now().UnixMilli()
	for line := range strings.Lines(text) {
		list = append(list, persistence.LogLine{At: now, Stream: lines.Log, Text: line})
	}
	return list
}

// LastLine is the number that the last line of a job has when nobody has counted them.
const LastLine = math.MaxInt64

// KeepLog stores what a worker has to say about a job, if it still holds the job: a late stranger
// must not write into the log of another. number is that of the last line. It says whether there is
// a log.
func KeepLog(ctx context.Context, m Member, task string, at flow.Address, token string, number int64, list []persistence.LogLine) (bool, error) {
	if len(list) == 0 {
		return false, nil
	}
	v, err := m.Reader.View(ctx, task)
	if err != nil {
		return false, err
	}
	return KeepLogOf(ctx, m, v, at, token, number, list)
}

// KeepLogOf is KeepLog for a task that has been read.
func KeepLogOf(ctx context.Context, m Member, v *persistence.View, at flow.Address, token string, number int64, list []persistence.LogLine) (bool, error) {
	live := v.State.Live(at)
	if live == nil || live.Token == "" || token != "" && token != live.Token {
		return false, nil
	}
	chunk := persistence.LogChunk{Task: v.ID, Job: flow.JobID(v.ID, at), Source: live.Token, Number: number, Lines: list}
	if m.Logs != nil {
		return m.Logs.Add(chunk), nil
	}
	return true, m.Store.AppendLog(ctx, []persistence.LogChunk{chunk}, maxBufferedLog)
}

// maxBufferedLog is how many characters of an attempt's log are kept where nobody else says so.
const maxBufferedLog = 2_000_000

// LogText is what there is of an attempt's log, as a text that says how much of it is missing; "" =
// there is none.
func LogText(ctx context.Context, store persistence.Logs, task, job string) (string, error) {
	var text strings.Builder
	r := LogReader{Store: store, Filter: persistence.LogFilter{Task: task, Job: job}}
	for more := true; more; {
		var parts []LogPart
		var err error
		if parts, more, err = r.Next(ctx); err != nil {
			return "", err
		}
		for i := range parts {
			text.WriteString(CutNote(parts[i].Missing))
			for _, l := range parts[i].Lines {
				text.WriteString(l.Text)
			}
		}
	}
	return text.String(), nil
}

// CutNote is what stands in a log for what is not kept of it any more; "" when that is nothing.
func CutNote(s persistence.LogSize) string {
	if s.Chars == 0 {
		return ""
	}
	return fmt.Sprintf("… cut here: the first %d characters (%d lines) are not kept\n", s.Chars, s.Lines)
}
