package worker

import (
	"strings"
	"sync"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/lines"
)

// partBytes is the maximum number of bytes of a job's output that are sent at once.
const partBytes = 128 << 10

// printedLog is the part of a pulled job's output that the engine has not confirmed.
type printedLog struct {
	lines.Buffer

	mu             sync.Mutex
	unconfirmed    []lines.Line // sent, but perhaps not received by the engine
	confirmedLines int64        // number of lines before the unconfirmed ones
}

func (p *printedLog) hasUnsent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.unconfirmed) > 0 || p.Waits()
}

// nextPart returns the next part to send. It returns the same part until confirmPart is called.
func (p *printedLog) nextPart() wire.PrintedLines {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unconfirmed) == 0 {
		p.unconfirmed = p.Take(partBytes)
	}
	return toWireLines(p.unconfirmed, p.confirmedLines)
}

// confirmPart records that the engine has received a part with the given number of lines.
func (p *printedLog) confirmPart(sent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent == len(p.unconfirmed) {
		p.unconfirmed, p.confirmedLines = nil, p.confirmedLines+int64(sent)
	}
}

// closeAndTake returns all unconfirmed output after the handler has returned.
func (p *printedLog) closeAndTake() wire.PrintedLines {
	p.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for more := p.Take(partBytes); len(more) > 0; more = p.Take(partBytes) {
		p.unconfirmed = append(p.unconfirmed, more...)
	}
	return toWireLines(p.unconfirmed, p.confirmedLines)
}

func toWireLines(list []lines.Line, from int64) wire.PrintedLines {
	s := wire.PrintedLines{LinesFrom: from}
	for _, l := range list {
		text, ended := strings.CutSuffix(l.Text, "\n")
		s.Lines = append(s.Lines, wire.LogLine{At: wire.Millis(l.At), Stream: l.Stream, Text: text, Part: !ended})
	}
	return s
}
