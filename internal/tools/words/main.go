// Command words writes all public words of Troupe to one file: fields, schemas and summaries of the
// HTTP API, commands and flags, names of metrics, messages and keys of log lines, and texts of the
// pages. The list is committed, so a change of a public word shows in its diff.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/internal/cli"
)

//go:generate go run . ../../.. ../../../api/v1/words.txt

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: words ROOT FILE")
		os.Exit(2)
	}
	if err := writeWords(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

// writeWords writes the words of the checkout at root into a file.
func writeWords(root, file string) error {
	var all []string
	for _, read := range []func(root string) ([]string, error){readAPI, readCommands, readMetrics, readLogs, readPages} {
		lines, err := read(root)
		if err != nil {
			return err
		}
		slices.Sort(lines)
		all = append(all, slices.Compact(lines)...)
	}
	return os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o644)
}

// readCommands returns the commands, arguments and flags with their help.
func readCommands(string) ([]string, error) {
	lines := cli.PublicWords()
	for i, line := range lines {
		lines[i] = "cli " + strings.Join(strings.Fields(line), " ")
	}
	return lines, nil
}

// readMetrics returns the metrics of a member with their labels.
func readMetrics(root string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(root, "deploy", "observability", "metrics.txt"))
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		lines = append(lines, "metric "+strings.TrimSpace(line))
	}
	return lines, nil
}
