package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// screen redraws its lines in place, below what was printed before.
type screen struct {
	w     io.Writer
	fd    int
	lines int // drawn last
}

// newScreen is nil when w is no terminal that can be drawn on.
func newScreen(w io.Writer) *screen {
	if d, ok := w.(outputWriter); ok { // what is drawn is clean, but for how it is drawn
		w = d.Writer
	}
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &screen{w: w, fd: int(file.Fd())}
}

// drawLines puts lines in the place of those drawn before. What does not fit is left out: a line
// that wrapped, or one scrolled away, could not be drawn over.
func (s *screen) drawLines(lines []string) {
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
		b.WriteString(truncateText(sanitizeText(line), width-1) + "\n")
	}
	s.lines = len(lines)
	_, _ = io.WriteString(s.w, b.String()) // a terminal that is gone shows nothing
}

// clear takes away what was drawn.
func (s *screen) clear() {
	s.drawLines(nil)
}

const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// frameEvery is how often a screen is drawn anew.
const frameEvery = 100 * time.Millisecond

// spinnerFrame is a character that changes with time.
func spinnerFrame(now time.Time) string {
	all := []rune(frames)
	return string(all[now.UnixMilli()/frameEvery.Milliseconds()%int64(len(all))])
}
