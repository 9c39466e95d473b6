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

// This file has functions for logs that the families of routes share.

// Lines returns the lines that a worker sends about a claimed job.
func Lines(s *wire.PrintedLines) []persistence.LogLine {
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

// TextLines returns the lines of a text that arrives as a whole. The last line may lack a newline.
func TextLines(text string) (list []persistence.LogLine) {
	now := time.Now().UnixMilli()
	for line := range strings.Lines(text) {
		list = append(list, persistence.LogLine{At: now, Stream: lines.Log, Text: line})
	}
	return list
}

// LastLine is the line number of a chunk from a sender that does not count lines.
const LastLine = math.MaxInt64

// KeepLog stores log lines of a worker for a job, if the worker still holds the job. Otherwise a
// late worker would write into the log of another one. number is the number of the last line.
// KeepLog reports whether lines were stored.
func KeepLog(ctx context.Context, m Member, task string, at flow.Address, token string,
	number int64, list []persistence.LogLine) (bool, error) {
	if len(list) == 0 {
		return false, nil
	}
	v, err := m.Reader.View(ctx, task)
	if err != nil {
		return false, err
	}
	return KeepLogOf(ctx, m, v, at, token, number, list)
}

// KeepLogOf is like KeepLog, for a task that was read already.
func KeepLogOf(ctx context.Context, m Member, v *persistence.View, at flow.Address, token string,
	number int64, list []persistence.LogLine) (bool, error) {
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

// maxBufferedLog is the default number of characters of an attempt's log that are kept.
const maxBufferedLog = 2_000_000

// LogText returns the log of an attempt as text, with notes in place of missing parts; "" if there
// is no log.
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

// CutNote returns the note that replaces deleted parts of a log; "" if nothing is missing.
func CutNote(s persistence.LogSize) string {
	if s.Chars == 0 {
		return ""
	}
	return fmt.Sprintf("… cut here: the first %d characters (%d lines) are not kept\n", s.Chars, s.Lines)
}
