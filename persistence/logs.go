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

// Logs keeps what attempts print, in chunks, in the order in which they came.
type Logs interface {
	// AppendLog adds chunks to the logs of their attempts, in the order given. Lines that their
	// source has numbered no higher than one that is there are left out, and those of a task that
	// there is not. Of each attempt the newest chunks stay: as many as have keep characters
	// together, and the last one.
	AppendLog(ctx context.Context, chunks []LogChunk, keep int) error
	// ReadLog lists chunks in order of their numbers. Whoever has read up to a number has missed
	// nothing before it.
	ReadLog(ctx context.Context, f LogFilter) ([]LogPart, error)
}

// LogChunk are lines of an attempt that are stored together.
type LogChunk struct {
	Task, Job string // Job is the attempt's
	// Source is who numbers the lines, from 1 up: whoever carries out the attempt, each time that
	// somebody is given it.
	Source string
	Number int64 // of the last line
	Lines  []LogLine
}

// LogLine is what an attempt has printed at once: a line with its end, or a part of a long one. It
// is UTF-8.
type LogLine = lines.Line

// LogFilter picks chunks of a task.
type LogFilter struct {
	Task  string
	Job   string // of one attempt only; "" = of all
	After int64  // number of a chunk; 0 = from the beginning
	Limit int
}

// LogPart is a chunk as it is read.
type LogPart struct {
	Number int64 // among all chunks of its task, from 1 up, with gaps
	Job    string
	Oldest bool    // nothing is kept of the attempt's log that was before
	Before LogSize // of all that was before in the attempt's log, kept or not
	Lines  []LogLine
}

// LogSize says how much of a log there is.
type LogSize struct{ Chars, Lines int64 }

// Plus is the size with some more lines. A line counts where it ends.
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

// LogTails is what a store knows of logs before chunks are added to them. What is not in a map is
// as if empty.
type LogTails struct {
	Tasks   map[string]int64    // number of the last chunk; a task that is not in it is not there
	Jobs    map[string]LogSize  // all that was ever added
	Sources map[LogSource]int64 // highest number
}

// LogSource names a source of an attempt's chunks.
type LogSource struct{ Job, Source string }

// LogRow is a chunk as it is stored.
type LogRow struct {
	Task, Job, Source string
	Number            int64 // of the last line, by its source
	N                 int64 // among all of its task
	Before, After     LogSize
	Content           []byte // EncodeLog
}

// Add decides which rows chunks become. The tails are what they are when those are stored.
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

// linesAfter are the lines behind a number.
func (c *LogChunk) linesAfter(number int64) []LogLine {
	first := c.Number - int64(len(c.Lines)) + 1
	return c.Lines[min(max(number-first+1, 0), int64(len(c.Lines))):]
}

// Cut tells how many characters of an attempt's log are too many: chunks that begin among them go,
// but for the last chunk.
func (t *LogTails) Cut(job string, keep int) int64 { return max(t.Jobs[job].Chars-int64(keep), 0) }

// formatLog is the first byte of a chunk. What begins with another one was written by a later
// release and is not read.
const formatLog = 1

var errLogFormat = errors.New("persistence: a part of a log is in a form that this release does not know")

// EncodeLog writes lines as bytes.
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

// DecodeLog reads what EncodeLog has written.
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

// Part is a row as it is read. One that cannot be read says so in the place of its lines.
func (r *LogRow) Part(oldest bool) LogPart {
	list, err := DecodeLog(r.Content)
	if err != nil {
		list = []LogLine{{Stream: lines.Log, Text: fmt.Sprintf("… %d lines that this release cannot read\n", r.After.Lines-r.Before.Lines)}}
	}
	return LogPart{Number: r.N, Job: r.Job, Oldest: oldest, Before: r.Before, Lines: list}
}
