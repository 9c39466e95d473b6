package worker

import (
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
)

// takePrinted is what a job has printed since the last time, or the beginning of that.
func (j *attached) takePrinted() (text []byte) {
	for _, l := range j.log.Take(partBytes) {
		text = append(text, l.Text...)
	}
	return text
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
		p := &attach.Progress{Number: n, Log: j.takePrinted()}
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
	if p.GetNote() != "" || len(p.GetLog()) > 0 {
		a.progress = append(a.progress, p)
	}
}
