package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// OutputFlag selects the form of the output.
type OutputFlag struct {
	Output string `short:"o" env:"TROUPE_OUTPUT" enum:"table,json" default:"table" help:"Output format: table or json (${default})."`
}

// IsJSON reports whether the output is JSON.
func (f OutputFlag) IsJSON() bool { return f.Output == "json" }

// PrintJSON writes a value as JSON. Values of users keep their digits and the order of their keys.
func PrintJSON(w io.Writer, v any) error { return EncodeJSON(w, v, "  ") }

// PrintLine writes a value on a line of its own.
func PrintLine(w io.Writer, v any) error { return EncodeJSON(w, v, "") }

// EncodeJSON writes a value as JSON with an indent, safe for a terminal.
func EncodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(EscapeUnsafe(b.Bytes()))
	return err
}

// PrintFields writes names and values, one pair per line, without empty ones.
func PrintFields(w io.Writer, pairs ...string) error {
	d, _ := w.(outputWriter)
	out := w
	if d.color {
		out = d.Writer // all values are sanitized
	}
	var rows [][]string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			rows = append(rows, []string{pairs[i] + ":", SanitizeText(pairs[i+1])})
		}
	}
	widths := Table{Rows: rows}.naturalWidths()
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(formatRow(row, widths, d.colorState))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// TruncateText cuts a text to n characters.
func TruncateText(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// Layouts of times for people, in the time's own zone and with its offset.
const (
	momentLayout  = "2006-01-02 15:04:05Z07:00"
	instantLayout = "2006-01-02 15:04:05.000Z07:00"
)

// FormatTime formats a time with seconds.
func FormatTime(t wire.Time) string { return inLayout(t, momentLayout) }

// FormatPreciseTime formats a time with milliseconds.
func FormatPreciseTime(t wire.Time) string { return inLayout(t, instantLayout) }

func inLayout(t wire.Time, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(layout)
}

// FormatCount formats a number of things for people.
func FormatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// FormatDuration formats a duration for people.
func FormatDuration(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// FormatElapsed formats the time between two moments; "" if the second one is in the future.
func FormatElapsed(from, to wire.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	return FormatDuration(to.Sub(from.Time))
}
