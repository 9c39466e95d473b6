package worker

import (
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
)

// takePrinted returns lines that a job has printed since the last call, up to the size of one
// message.
func (j *attachedJob) takePrinted() (said []*attach.Line) {
	for _, l := range j.log.Take(partBytes) {
		text, ended := strings.CutSuffix(l.Text, "\n")
		said = append(said, &attach.Line{AtMs: l.At, Stream: l.Stream, Text: text, Part: !ended})
	}
	return said
}

// linesBytes returns the approximate size of lines in a message.
func linesBytes(said []*attach.Line) (size int) {
	for _, l := range said {
		size += len(l.GetText()) + 32
	}
	return size
}

// setProgress stores the progress text of a job's handler for the next progress message.
func (a *attachedWorker) setProgress(j *attachedJob, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j.noted, j.progressText = true, text
}

// collectProgress queues a progress message for each running job that has news.
func (a *attachedWorker) collectProgress() {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := time.Now().Add(-a.worker.cfg.NoteAfter)
	for n, j := range a.held {
		p := &attach.Progress{Number: n, Lines: j.takePrinted()}
		if !j.noted && !j.begun.IsZero() && j.begun.Before(since) {
			j.noted, p.StatusText = true, "running"
		}
		if j.progressText != "" {
			p.StatusText, j.progressText = j.progressText, ""
		}
		a.addProgress(p)
	}
}

// addProgress queues a progress message of a job. The lock is held.
func (a *attachedWorker) addProgress(p *attach.Progress) {
	if p.GetStatusText() != "" || len(p.GetLines()) > 0 {
		a.progress = append(a.progress, p)
	}
}
