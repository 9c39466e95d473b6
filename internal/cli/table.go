package cli

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is a table with a header. On a narrow terminal its cells are cut, the widest first, and
// columns are left out. Elsewhere everything is written.
type table struct {
	header []string
	rows   [][]string
	spare  []string // columns to leave out if there is no room, in this order
}

// Minimal widths of cut cells. While spare columns can be left out, cells keep at least readable
// characters, and after that cutMost. The first column is never cut, because people copy it.
const (
	readable = 16
	cutMost  = 6
	gap      = 2 // between columns
)

func printTable(w io.Writer, header []string, rows [][]string) error {
	return table{header: header, rows: rows}.writeRows(w)
}

func (t table) writeRows(w io.Writer) error {
	for _, row := range t.rows {
		for i := range row {
			row[i] = sanitizeText(row[i])
		}
	}
	d, _ := w.(outputWriter)
	widths := t.fitColumns(d.width)
	out := w
	if d.color {
		out = d.Writer // all cells are sanitized
	}
	var b strings.Builder
	b.WriteString(formatRow(t.header, widths, nil))
	for _, row := range t.rows {
		b.WriteString(formatRow(row, widths, d.colorState))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// fitColumns returns the widths of the columns; -1 = left out. A terminal width of 0 is unlimited.
func (t table) fitColumns(width int) []int {
	widths := t.naturalWidths()
	if width <= 0 {
		return widths
	}
	shrinkColumns(widths, t.header, width, readable)
	for _, name := range t.spare {
		if totalWidth(widths) <= width {
			break
		}
		if i := slices.Index(t.header, name); i >= 0 {
			widths[i] = -1
			widths = t.widenColumns(widths, width)
		}
	}
	shrinkColumns(widths, t.header, width, cutMost)
	return widths
}

// naturalWidths returns the widths that hold all cells.
func (t table) naturalWidths() []int {
	var widths []int
	for _, row := range slices.Concat([][]string{t.header}, t.rows) {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// widenColumns distributes the room of an omitted column among the others.
func (t table) widenColumns(widths []int, width int) []int {
	all := t.naturalWidths()
	for i := range widths {
		if widths[i] < 0 {
			all[i] = -1
		}
	}
	shrinkColumns(all, t.header, width, readable)
	return all
}

// shrinkColumns makes the widest columns narrower until all fit, or none is wider than its header
// and least.
func shrinkColumns(widths []int, header []string, width, least int) {
	for totalWidth(widths) > width {
		widest := -1
		for i := 1; i < len(widths); i++ {
			if widths[i] > max(least, headWidth(header, i)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func headWidth(header []string, i int) int {
	if i >= len(header) {
		return 0
	}
	return utf8.RuneCountInString(header[i])
}

func totalWidth(widths []int) int {
	sum := -gap
	for _, w := range widths {
		if w >= 0 {
			sum += w + gap
		}
	}
	return sum
}

// formatRow writes cells side by side. paint adds color to a cell.
func formatRow(cells []string, widths []int, paint func(string) string) string {
	var b strings.Builder
	spaces := 0
	for i, cell := range cells {
		if widths[i] < 0 {
			continue
		}
		cell = truncateText(cell, widths[i])
		width := utf8.RuneCountInString(cell)
		if i > 0 && paint != nil { // the first one is a name
			cell = paint(cell)
		}
		if width > 0 {
			b.WriteString(strings.Repeat(" ", spaces) + cell)
			spaces = 0
		}
		spaces += widths[i] - width + gap
	}
	b.WriteString("\n")
	return b.String()
}
