package console

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is a table with a header. On a narrow terminal its cells are cut, the widest first, and
// spare columns are left out. Elsewhere the whole table is written.
type Table struct {
	Header []string
	Rows   [][]string
	Spare  []string // columns that may be left out on a narrow terminal, in this order
}

// Minimal widths of cut cells: readable while spare columns can be left out, and cutMost after
// that. The first column is never cut, because people copy its values.
const (
	readable = 16
	cutMost  = 6
	gap      = 2 // spaces between columns
)

// PrintTable writes a table with the given rows.
func PrintTable(w io.Writer, header []string, rows [][]string) error {
	return Table{Header: header, Rows: rows}.WriteRows(w)
}

// WriteRows writes the table, fitted to the width of the terminal.
func (t Table) WriteRows(w io.Writer) error {
	for _, row := range t.Rows {
		for i := range row {
			row[i] = SanitizeText(row[i])
		}
	}
	d, _ := w.(outputWriter)
	widths := t.fitColumns(d.width)
	out := w
	if d.color {
		out = d.Writer // all cells are sanitized
	}
	var b strings.Builder
	b.WriteString(formatRow(t.Header, widths, nil))
	for _, row := range t.Rows {
		b.WriteString(formatRow(row, widths, d.colorState))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// fitColumns returns the widths of the columns; -1 means left out. A terminal width of 0 is
// unlimited.
func (t Table) fitColumns(width int) []int {
	widths := t.naturalWidths()
	if width <= 0 {
		return widths
	}
	shrinkColumns(widths, t.Header, width, readable)
	for _, name := range t.Spare {
		if totalWidth(widths) <= width {
			break
		}
		if i := slices.Index(t.Header, name); i >= 0 {
			widths[i] = -1
			widths = t.widenColumns(widths, width)
		}
	}
	shrinkColumns(widths, t.Header, width, cutMost)
	return widths
}

// naturalWidths returns the widths of the widest cells of each column.
func (t Table) naturalWidths() []int {
	var widths []int
	for _, row := range slices.Concat([][]string{t.Header}, t.Rows) {
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
func (t Table) widenColumns(widths []int, width int) []int {
	all := t.naturalWidths()
	for i := range widths {
		if widths[i] < 0 {
			all[i] = -1
		}
	}
	shrinkColumns(all, t.Header, width, readable)
	return all
}

// shrinkColumns makes the widest columns narrower until all columns fit, or no column is wider than
// its header and least.
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
		cell = TruncateText(cell, widths[i])
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
