package worker

import (
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
)

// takePrinted is what a job has printed since the last time, or the beginning of that.
func (j *attachedJob) takePrinted() (said []*attach.Line) {
	for _, l := range j.log.Take(partBytes) {
		text, ended := strings.CutSuffix(l.Text, "\n")
		said = append(said, &attach.Line{AtMs: l.At, Stream: l.Stream, Text: text, Part: !ended})
	}
	return said
}

// linesBytes is how much of a message lines take, about.
func linesBytes(said []*attach.Line) (size int) {
	for _, l := range said {
		size += len(l.GetText()) + 32
	}
	return size
}

// setProgress has it told, with the next progress, what a job's handler says of itself.
func (a *attachedWorker) setProgress(j *attachedJob, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j.noted, j.progressText = true, text
}

// collectProgress of the jobs that go on.
func (a *attachedWorker) collectProgress() {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := time.Now().Add(-a.worker.cfg.NoteAfter)
	for n, j := range a.held {
		p := &attach.Progress{Number: n, Lines: j.takePrinted()}
		if !j.noted && !j.begun.IsZero() && j.begun.Before(since) {
			j.noted, p.Note = true, "running"
		}
		if j.progressText != "" {
			p.Note, j.progressText = j.progressText, ""
		}
		a.addProgress(p)
	}
}

// addProgress has something told of a job. The lock is held.
func (a *attachedWorker) addProgress(p *attach.Progress) {
	if p.GetNote() != "" || len(p.GetLines()) > 0 {
		a.progress = append(a.progress, p)
	}
}
