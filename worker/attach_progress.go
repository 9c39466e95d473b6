package worker

import (
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
)

// takePrinted is what a job has printed since the last time, or the beginning of that.
func (j *attached) takePrinted() (said []*attach.Line) {
	for _, l := range j.log.Take(partBytes) {
		text, ended := strings.CutSuffix(l.Text, "\n")
		said = append(said, &attach.Line{AtMs: l.At, Stream: l.Stream, Text: text, Part: !ended})
	}
	return said
}

// saidBytes is how much of a message lines take, about.
func saidBytes(said []*attach.Line) (size int) {
	for _, l := range said {
		size += len(l.GetText()) + 32
	}
	return size
}

// tell has it told, with the next progress, what a job's handler says of itself.
func (a *attachment) tell(j *attached, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j.noted, j.said = true, text
}

// tellProgress of the jobs that go on.
func (a *attachment) tellProgress() {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := time.Now().Add(-a.worker.cfg.NoteAfter)
	for n, j := range a.held {
		p := &attach.Progress{Number: n, Lines: j.takePrinted()}
		if !j.noted && !j.begun.IsZero() && j.begun.Before(since) {
			j.noted, p.Note = true, "running"
		}
		if j.said != "" {
			p.Note, j.said = j.said, ""
		}
		a.say(p)
	}
}

// say has something told of a job. The lock is held.
func (a *attachment) say(p *attach.Progress) {
	if p.GetNote() != "" || len(p.GetLines()) > 0 {
		a.progress = append(a.progress, p)
	}
}
