package worker

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/job"
)

// attachedLog keeps what a handler writes until it is sent; handlers may write from several goroutines.
type attachedLog struct {
	mu     sync.Mutex
	all    int // bytes that were kept
	unsent []byte
}

func (l *attachedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := p[:min(len(p), job.MaxLog-l.all)]
	l.unsent = append(l.unsent, kept...)
	l.all += len(kept)
	return len(p), nil
}

func (l *attachedLog) take() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.unsent
	l.unsent = nil
	return said
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
		p := &attach.Progress{Number: n, Log: j.log.take()}
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
