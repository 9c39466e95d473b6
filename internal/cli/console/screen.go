package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Screen redraws its lines in place, below earlier output.
type Screen struct {
	w     io.Writer
	fd    int
	lines int // number of lines drawn last
}

// NewScreen returns nil if w is no terminal that supports drawing.
func NewScreen(w io.Writer) *Screen {
	// the drawn text is sanitized, but contains control sequences for drawing
	if d, ok := w.(outputWriter); ok {
		w = d.Writer
	}
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &Screen{w: w, fd: int(file.Fd())}
}

// DrawLines replaces the lines drawn before. Lines that do not fit are omitted, because a wrapped
// or scrolled line could not be redrawn.
func (s *Screen) DrawLines(lines []string) {
	width, height, err := term.GetSize(s.fd)
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	height = max(height, 3)
	if rest := len(lines) - (height - 1); rest > 0 {
		lines = append(lines[:height-2:height-2], fmt.Sprintf("… and %d more", rest+1))
	}
	var b strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.lines)
	}
	b.WriteString("\r\x1b[J")
	for _, line := range lines {
		b.WriteString(TruncateText(SanitizeText(line), width-1) + "\n")
	}
	s.lines = len(lines)
	_, _ = io.WriteString(s.w, b.String()) // a terminal that is gone shows nothing
}

// Clear removes the drawn lines.
func (s *Screen) Clear() {
	s.DrawLines(nil)
}

const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// FrameInterval is the interval between two redraws.
const FrameInterval = 100 * time.Millisecond

// SpinnerFrame returns a character that changes with time.
func SpinnerFrame(now time.Time) string {
	all := []rune(frames)
	return string(all[now.UnixMilli()/FrameInterval.Milliseconds()%int64(len(all))])
}
