package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPagesAreReadAsTheTextsOfTheirCatalogue(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "api", "ui", "src")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	source := "import { x } from './left out'\n" +
		"/** A comment's quote. */\n" +
		"export const texts = {\n" +
		"  start: 'Start a task: `troupe`'\n" +
		"    + ' now',\n" +
		"  worker: \"a --exec 'b' worker\",\n" +
		"  count: (n: number) => `${n} tasks` + '…',\n" +
		"}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "texts.ts"), []byte(source), 0o644))

	lines, err := readPages(root)

	require.NoError(t, err)
	require.Equal(t, []string{"page Start a task: `troupe` now", "page a --exec 'b' worker", "page ${n} tasks"}, lines)
}
