package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGeneratedPartsAreUpToDate(t *testing.T) {
	for name := range generatedPages {
		before, renewed, err := renewPage("../../..", name)
		require.NoError(t, err)
		require.Equal(t, renewed, before, "%s is out of date: run make generate", name)
	}
}

func TestTextAroundAGeneratedPartStays(t *testing.T) {
	root := t.TempDir()
	page := filepath.Join(root, "docs", "reference", "cli.md")
	require.NoError(t, os.MkdirAll(filepath.Dir(page), 0o700))
	require.NoError(t, os.WriteFile(page, []byte("# Head\n"+beginMark+"old\n"+endMark+"Tail\n"), 0o600))
	_, renewed, err := renewPage(root, "cli.md")
	require.NoError(t, err)
	require.Regexp(t, `(?s)^# Head\n.*### troupe flow run\n.*\nTail\n$`, renewed)
	require.NotContains(t, renewed, "old\n")

	require.NoError(t, os.WriteFile(page, []byte("# Head\n"), 0o600))
	_, _, err = renewPage(root, "cli.md")
	require.ErrorContains(t, err, "has no marks")
}

func TestTextOfACellDoesNotEndIt(t *testing.T) {
	made := newTable("a", "b")
	require.True(t, made.isEmpty())
	made.addRow(quoteCode("bash|zsh"), escapeText("PATH, LC_* or <x>\nand more"))
	require.Equal(t, "| a | b |\n|---|---|\n| `bash\\|zsh` | PATH, LC_\\* or \\<x> and more |\n", made.String())
}
