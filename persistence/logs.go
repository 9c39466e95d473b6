package persistence

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/internal/lines"
)

// Logs stores the output of attempts as chunks, in order of arrival.
type Logs interface {
	// AppendLog adds chunks to the logs of their attempts, in order. It skips chunks of unknown
	// tasks, and lines numbered no higher than a stored line of their source. It keeps the newest
	// chunks of an attempt that together have keep characters, and at least the last chunk.
	AppendLog(ctx context.Context, chunks []LogChunk, keep int) error
	// ReadLog returns chunks in order of their numbers. Chunks become visible in this order, so a
	// reader that continues after a number misses none.
	ReadLog(ctx context.Context, f LogFilter) ([]LogPart, error)
}

// LogChunk is a group of lines of one attempt that are stored together.
type LogChunk struct {
	Task, Job string // Job is the id of the attempt's job
	// Source identifies the sender that numbers the lines from 1. Each delivery of the attempt to a
	// session is a new source.
	Source string
	Number int64 // number of the last line
	Lines  []LogLine
}

// LogLine is one piece of an attempt's output: a line with its line end, or a part of a long line.
// It is UTF-8.
type LogLine = lines.Line

// LogFilter selects chunks of a task.
type LogFilter struct {
	Task  string
	Job   string // only this attempt; "" means all attempts
	After int64  // number of a chunk; 0 means from the start
	Limit int
}

// LogPart is a chunk as returned to a reader.
type LogPart struct {
	Number int64 // position among all chunks of the task, from 1, with gaps
	Job    string
	Oldest bool    // no earlier chunk of the attempt's log is kept
	Before LogSize // size of the attempt's log before this chunk, including deleted chunks
	Lines  []LogLine
}

// LogSize is the size of a log.
type LogSize struct{ Chars, Lines int64 }

// Plus returns the size after adding lines. A line counts when its line end arrives.
func (s LogSize) Plus(list []LogLine) LogSize {
	for i := range list {
		text := list[i].Text
		s.Chars += int64(utf8.RuneCountInString(text))
		if len(text) > 0 && text[len(text)-1] == '\n' {
			s.Lines++
		}
	}
	return s
}

// LogTails is the state of logs in a store before chunks are added. A missing map entry means an
// empty log.
type LogTails struct {
	Tasks   map[string]int64    // number of the last chunk; a missing entry means an unknown task
	Jobs    map[string]LogSize  // size of all lines ever added
	Sources map[LogSource]int64 // highest line number stored
}

// LogSource identifies a source of chunks of an attempt.
type LogSource struct{ Job, Source string }

// LogRow is a chunk as it is stored.
type LogRow struct {
	Task, Job, Source string
	Number            int64 // number of the last line, counted by its source
	N                 int64 // number among all chunks of its task
	Before, After     LogSize
	Content           []byte // encoded by EncodeLog
}

// Add returns the rows to store for the given chunks, and updates the tails as if those rows were
// stored.
func (t *LogTails) Add(chunks []LogChunk) (rows []LogRow) {
	for i := range chunks {
		c := &chunks[i]
		source := LogSource{c.Job, c.Source}
		last, there := t.Tasks[c.Task]
		list := c.linesAfter(t.Sources[source])
		if !there || len(list) == 0 {
			continue
		}
		row := LogRow{Task: c.Task, Job: c.Job, Source: c.Source, Number: c.Number, N: last + 1,
			Before: t.Jobs[c.Job], After: t.Jobs[c.Job].Plus(list), Content: EncodeLog(list)}
		t.Tasks[c.Task], t.Jobs[c.Job], t.Sources[source] = row.N, row.After, c.Number
		rows = append(rows, row)
	}
	return rows
}

// linesAfter returns the lines of a chunk with numbers above the given one.
func (c *LogChunk) linesAfter(number int64) []LogLine {
	first := c.Number - int64(len(c.Lines)) + 1
	return c.Lines[min(max(number-first+1, 0), int64(len(c.Lines))):]
}

// Cut returns by how many characters an attempt's log exceeds the limit. Chunks that begin within
// these characters are deleted, except the last chunk.
func (t *LogTails) Cut(job string, keep int) int64 { return max(t.Jobs[job].Chars-int64(keep), 0) }

// formatLog is the first byte of a chunk. A chunk with another first byte comes from a later
// release and is not read.
const formatLog = 1

var errLogFormat = errors.New("persistence: a part of a log is in a form that this release does not know")

// EncodeLog encodes lines as bytes.
func EncodeLog(list []LogLine) []byte {
	size := 1
	for i := range list {
		size += len(list[i].Text) + 8
	}
	b := append(make([]byte, 0, size), formatLog)
	at := int64(0)
	for i := range list {
		l := &list[i]
		b = append(b, streamCode(l.Stream))
		b = binary.AppendVarint(b, l.At-at)
		b = binary.AppendUvarint(b, uint64(len(l.Text)))
		b = append(b, l.Text...)
		at = l.At
	}
	return b
}

func streamCode(stream string) byte {
	for i, name := range lines.Streams {
		if name == stream {
			return byte(i)
		}
	}
	return 0
}

// DecodeLog decodes bytes that EncodeLog wrote.
func DecodeLog(b []byte) (list []LogLine, err error) {
	if len(b) == 0 || b[0] != formatLog {
		return nil, errLogFormat
	}
	at := int64(0)
	for b = b[1:]; len(b) > 0; {
		stream := lines.Log
		if int(b[0]) < len(lines.Streams) {
			stream = lines.Streams[b[0]]
		}
		later, n := binary.Varint(b[1:])
		if n <= 0 {
			return nil, errLogFormat
		}
		b = b[1+n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > math.MaxInt32 || int(size) > len(b)-n {
			return nil, errLogFormat
		}
		at += later
		list = append(list, LogLine{At: at, Stream: stream, Text: string(b[n : n+int(size)])})
		b = b[n+int(size):]
	}
	return list, nil
}

// Part returns the row as a part for readers. An unreadable row yields one line that reports the
// unreadable lines.
func (r *LogRow) Part(oldest bool) LogPart {
	list, err := DecodeLog(r.Content)
	if err != nil {
		list = []LogLine{{Stream: lines.Log, Text: fmt.Sprintf("… %d lines that this release cannot read\n", r.After.Lines-r.Before.Lines)}}
	}
	return LogPart{Number: r.N, Job: r.Job, Oldest: oldest, Before: r.Before, Lines: list}
}
