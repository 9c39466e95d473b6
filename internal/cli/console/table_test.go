package console

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const anID = "01234567-89ab-7def-8123-456789abcdef"

func aTable() Table {
	return Table{
		Header: []string{"TASK", "FLOW", "STATE", "STEPS", "NODE", "STARTED", "ERROR"},
		Rows: [][]string{
			{anID, "order", "failed", "12", "charge", "2026-01-31 10:00:00Z",
				"the card was declined by the bank, which says that it has expired"},
			{anID, "a-flow-with-a-very-long-slug-indeed", "running (paused)", "1", "approve", "2026-01-31 10:00:00Z", ""},
		},
		Spare: []string{"STEPS", "NODE", "STARTED"},
	}
}

func printTable(t *testing.T, tb Table, width int, color bool) []string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, tb.WriteRows(outputWriter{Writer: &b, width: width, color: color}))
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func TestATableFitsTheTerminal(t *testing.T) {
	for _, width := range []int{200, 120, 100, 80, 70} {
		for _, line := range printTable(t, aTable(), width, false) {
			require.LessOrEqual(t, utf8.RuneCountInString(line), width, line)
			require.True(t, strings.HasPrefix(line, "TASK ") || strings.HasPrefix(line, anID+"  "), "ids are whole: %s", line)
		}
	}
	narrow := printTable(t, aTable(), 80, false)
	require.NotContains(t, narrow[0], "STEPS")
	require.Contains(t, narrow[0], "STATE")
	require.Contains(t, narrow[1], "failed")
	require.Contains(t, narrow[1], "the car")
	require.Contains(t, narrow[1], "…")
	for _, line := range printTable(t, aTable(), 0, false)[1:] {
		require.NotContains(t, line, "…", "elsewhere everything is written")
	}
}

func TestStatesHaveColorsWhereTheyMay(t *testing.T) {
	lines := printTable(t, aTable(), 0, true)
	require.Contains(t, lines[1], red+"failed"+plain)
	require.Contains(t, lines[2], blue+"running (paused)"+plain)
	var without []string
	for _, line := range lines {
		without = append(without, strings.NewReplacer(red, "", blue, "", plain, "").Replace(line))
	}
	require.Equal(t, printTable(t, aTable(), 0, false), without, "they change no place")
	nasty := Table{Header: []string{"A", "STATE"}, Rows: [][]string{{"x", "failed\x1b[2J"}}}
	require.NotContains(t, strings.Join(printTable(t, nasty, 0, true), ""), "\x1b[2J")
}
