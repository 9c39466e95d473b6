package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// outputFlag is for every command that shows something.
type outputFlag struct {
	Output string `short:"o" env:"TROUPE_OUTPUT" enum:"table,json" default:"table" help:"table or json (${default})."`
}

func (f outputFlag) json() bool { return f.Output == "json" }

// printJSON writes a value for programs. Users' values keep their digits and the order of their keys.
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

// printTable writes rows under a header.
func printTable(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	for _, row := range rows {
		for i := range row {
			row[i] = clean(row[i])
		}
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

// printFields writes names and values below each other, without those that are empty.
func printFields(w io.Writer, pairs ...string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(tw, "%s:\t%s\n", pairs[i], clean(pairs[i+1]))
		}
	}
	return tw.Flush()
}

// short cuts a text to n characters.
func short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// moment is a time for people, in their own zone.
func moment(t wire.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// counted is a number of things for people.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// span is a duration for people.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// took is the time between two moments, "" while the second one is to come.
func took(from, to wire.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	return span(to.Sub(from.Time))
}
