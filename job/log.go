package job

import (
	"bytes"
	"sync"
)

// MaxLog is how much of what a handler writes to its Log is kept.
const MaxLog = 256 << 10

// Log keeps what handlers write; they may do so from several goroutines.
type Log struct {
	mu   sync.Mutex
	kept bytes.Buffer
	sent int // bytes that somebody was sent while the job went on
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept.Write(p[:min(len(p), MaxLog-l.kept.Len())])
	return len(p), nil
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}

// Grown says how much there is, and whether some of it was not sent yet.
func (l *Log) Grown() (size int, grown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.Len(), l.kept.Len() > l.sent
}

// Send is all of it, which is about to be sent.
func (l *Log) Send() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = l.kept.Len()
	return l.kept.String()
}
