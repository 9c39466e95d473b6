package attached

import (
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
)

const (
	// maxLog is how much is kept of what a job has printed.
	maxLog = 256 << 10
	// maxNotes is how many notes may wait to be stored. Further ones are dropped: they are for whoever watches.
	maxNotes = 1000
)

// noted is what a worker calls the state of its job.
type noted struct {
	task string
	note flow.Note
}

// progress keeps what a worker says of a job that goes on.
func (s *Sessions) progress(ses *session, p *attach.Progress) {
	g := ses.grants[p.GetNumber()]
	if g == nil || g.passage == nil && g.brought == nil {
		return
	}
	g.log = append(g.log, p.GetLog()[:min(len(p.GetLog()), maxLog-len(g.log))]...)
	if p.GetNote() == "" || s.opts.Note == nil {
		return
	}
	select {
	case s.notes <- noted{g.task, flow.Note{Address: g.at, Text: p.GetNote()}}:
	default:
	}
}

func (s *Sessions) keepNotes() {
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
				s.opts.Logger.Debug("a worker's note was not kept", "task", n.task, "error", err)
			}
		}
	}
}

// keepLog says whether there is something to be read.
func (s *Sessions) keepLog(g *grant) bool {
	err := s.opts.Logs.PutLog(s.ctx, g.task, flow.JobID(g.task, g.at), g.log)
	if err != nil && s.ctx.Err() == nil {
		s.opts.Logger.Warn("what a worker said at a job was not kept", "task", g.task, "error", err)
	}
	return err == nil
}
