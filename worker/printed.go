package worker

import (
	"strings"
	"sync"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/lines"
)

// partBytes is how much of what a job has printed is sent at once.
const partBytes = 128 << 10

// printedLog is what a pulled job's handler has printed and the engine does not have yet.
type printedLog struct {
	lines.Buffer

	mu             sync.Mutex
	unconfirmed    []lines.Line // sent, perhaps in vain
	confirmedLines int64        // how many lines were before those
}

func (p *printedLog) hasUnsent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.unconfirmed) > 0 || p.Waits()
}

// nextPart is what is to be sent next: the same as before, until that has arrived.
func (p *printedLog) nextPart() wire.Said {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unconfirmed) == 0 {
		p.unconfirmed = p.Take(partBytes)
	}
	return toWireLines(p.unconfirmed, p.confirmedLines)
}

// confirmPart says that the engine has a part of so many lines.
func (p *printedLog) confirmPart(sent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent == len(p.unconfirmed) {
		p.unconfirmed, p.confirmedLines = nil, p.confirmedLines+int64(sent)
	}
}

// closeAndTake is all that the engine may not have when the handler has returned.
func (p *printedLog) closeAndTake() wire.Said {
	p.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for more := p.Take(partBytes); len(more) > 0; more = p.Take(partBytes) {
		p.unconfirmed = append(p.unconfirmed, more...)
	}
	return toWireLines(p.unconfirmed, p.confirmedLines)
}

func toWireLines(list []lines.Line, from int64) wire.Said {
	s := wire.Said{LinesFrom: from}
	for _, l := range list {
		text, ended := strings.CutSuffix(l.Text, "\n")
		s.Lines = append(s.Lines, wire.LogLine{At: wire.Millis(l.At), Stream: l.Stream, Text: text, Part: !ended})
	}
	return s
}
