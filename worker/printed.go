package worker

import (
	"strings"
	"sync"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/lines"
)

// partBytes is how much of what a job has printed is sent at once.
const partBytes = 128 << 10

// printed is what a pulled job's handler has printed and the engine does not have yet.
type printed struct {
	lines.Buffer

	mu     sync.Mutex
	unsaid []lines.Line // sent, perhaps in vain
	from   int64        // how many lines were before those
}

func (p *printed) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.unsaid) > 0 || p.Waits()
}

// part is what is to be sent next: the same as before, until that has arrived.
func (p *printed) part() wire.Said {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unsaid) == 0 {
		p.unsaid = p.Take(partBytes)
	}
	return said(p.unsaid, p.from)
}

// arrived says that the engine has a part of so many lines.
func (p *printed) arrived(sent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent == len(p.unsaid) {
		p.unsaid, p.from = nil, p.from+int64(sent)
	}
}

// rest is all that the engine may not have when the handler has returned.
func (p *printed) rest() wire.Said {
	p.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for more := p.Take(partBytes); len(more) > 0; more = p.Take(partBytes) {
		p.unsaid = append(p.unsaid, more...)
	}
	return said(p.unsaid, p.from)
}

func said(list []lines.Line, from int64) wire.Said {
	s := wire.Said{LinesFrom: from}
	for _, l := range list {
		text, ended := strings.CutSuffix(l.Text, "\n")
		s.Lines = append(s.Lines, wire.LogLine{At: wire.Millis(l.At), Stream: l.Stream, Text: text, Part: !ended})
	}
	return s
}
