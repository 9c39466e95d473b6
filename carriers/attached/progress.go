package attached

import (
	"cmp"
	"io"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/internal/logids"
)

// maxNotes is how many progress notes may wait to be stored. Further notes are dropped, because
// they are only for display.
const maxNotes = 1000

// jobNote is a worker's progress note for its job.
type jobNote struct {
	task string
	note flow.Note
}

// takeProgress stores a worker's output and note for a running job.
func (s *Sessions) takeProgress(ses *workerSession, p *attach.Progress) {
	g := ses.grants[p.GetNumber()]
	if g == nil || g.passage == nil && g.brought == nil {
		return
	}
	s.appendLog(g, p)
	if p.GetStatusText() == "" || s.opts.Note == nil {
		return
	}
	select {
	case s.notes <- jobNote{g.task, flow.Note{Address: g.at, Text: p.GetStatusText()}}:
	default:
	}
}

func (s *Sessions) storeNotes() {
	for {
		s.host.Wait(func() bool { return len(s.notes) > 0 || s.ctx.Err() != nil })
		select {
		case <-s.ctx.Done():
			return
		case n := <-s.notes:
			if s.ctx.Err() != nil {
				return
			}
			if err := s.opts.Note(s.ctx, n.task, n.note); err != nil && s.ctx.Err() == nil {
				s.opts.Logger.DebugContext(logids.Attempt(s.ctx, n.task, n.note.Address), "storing a status text failed", "error", err)
			}
		}
	}
}

// Log stores the output of a worker during a job.
type Log interface {
	io.Writer
	// Add adds output that the worker has split into lines.
	Add([]lines.Line)
	// Close ends the log and waits briefly for the store. It reports whether the log has content.
	Close() bool
	// End is like Close, but does not wait.
	End() bool
}

// appendLog stores a worker's output for a job.
func (s *Sessions) appendLog(g *jobGrant, p *attach.Progress) {
	if len(p.GetLog()) == 0 && len(p.GetLines()) == 0 || s.opts.Log == nil {
		return
	}
	if g.log == nil {
		g.log = s.opts.Log(g.task, flow.JobID(g.task, g.at))
	}
	_, _ = g.log.Write(p.GetLog()) // Write never fails
	g.log.Add(linesOf(p.GetLines()))
}

func linesOf(said []*attach.Line) []lines.Line {
	now, list := time.Now().UnixMilli(), make([]lines.Line, len(said))
	for i, l := range said {
		list[i] = lines.Line{At: cmp.Or(l.GetAtMs(), now), Stream: lines.StreamNamed(l.GetStream()), Text: l.GetText()}
		if !l.GetPart() {
			list[i].Text += "\n"
		}
	}
	return list
}
