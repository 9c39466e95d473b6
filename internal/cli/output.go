package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// outputFlag selects the form of the output.
type outputFlag struct {
	Output string `short:"o" env:"TROUPE_OUTPUT" enum:"table,json" default:"table" help:"table or json (${default})."`
}

func (f outputFlag) isJSON() bool { return f.Output == "json" }

// printJSON writes a value as JSON. Values of users keep their digits and the order of their keys.
func printJSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// printLine writes a value on a line of its own.
func printLine(w io.Writer, v any) error { return encodeJSON(w, v, "") }

func encodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeUnsafe(b.Bytes()))
	return err
}

// printFields writes names and values, one pair per line, without empty ones.
func printFields(w io.Writer, pairs ...string) error {
	d, _ := w.(outputWriter)
	out := w
	if d.color {
		out = d.Writer // all values are sanitized
	}
	var rows [][]string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			rows = append(rows, []string{pairs[i] + ":", sanitizeText(pairs[i+1])})
		}
	}
	widths := table{rows: rows}.naturalWidths()
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(formatRow(row, widths, d.colorState))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// truncateText cuts a text to n characters.
func truncateText(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// Layouts of times for people, in their own zone and with its offset.
const (
	momentLayout  = "2006-01-02 15:04:05Z07:00"
	instantLayout = "2006-01-02 15:04:05.000Z07:00"
)

func formatTime(t wire.Time) string { return inLayout(t, momentLayout) }

// formatPreciseTime formats a time with milliseconds.
func formatPreciseTime(t wire.Time) string { return inLayout(t, instantLayout) }

func inLayout(t wire.Time, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(layout)
}

// formatCount formats a number of things for people.
func formatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// formatDuration formats a duration for people.
func formatDuration(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// formatElapsed formats the time between two moments; "" if the second one is in the future.
func formatElapsed(from, to wire.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	return formatDuration(to.Sub(from.Time))
}
