package main

import (
	"strings"
)

// markdownTable is a table of Markdown.
type markdownTable struct {
	rows [][]string // the first one has the headings
}

func newTable(headings ...string) *markdownTable {
	return &markdownTable{[][]string{headings}}
}

func (t *markdownTable) addRow(cells ...string) { t.rows = append(t.rows, cells) }

func (t *markdownTable) isEmpty() bool { return len(t.rows) == 1 }

func (t *markdownTable) String() string {
	var b strings.Builder
	for i, cells := range t.rows {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(cells)) + "\n")
		}
	}
	return b.String()
}

var markdown = strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "\n", " ")

// escapeText returns a text as it stands in a cell or paragraph of Markdown.
func escapeText(text string) string { return markdown.Replace(text) }

// quoteCode returns a text as a code span, which a bar would end in a table.
func quoteCode(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// quoteAll returns texts as code spans with commas between them.
func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quoteCode(text)
	}
	return strings.Join(quoted, ", ")
}
