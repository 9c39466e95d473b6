package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// describeMetrics lists the metrics of a member by their parts. A test of the program keeps the
// list equal to the metrics that a member registers.
func describeMetrics(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "observability", "metrics.txt"))
	if err != nil {
		return "", err
	}
	member, cluster := newTable("metric", "type", "labels", "meaning"), newTable("metric", "type", "labels", "meaning")
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "{")
		labels, rest, _ := strings.Cut(rest, "} ")
		kind, help, ok := strings.Cut(rest, " ")
		if !ok {
			return "", fmt.Errorf("metrics.txt has a line without a type or help: %s", line)
		}
		of := member
		if strings.HasPrefix(name, "troupe_cluster_") {
			of = cluster
		}
		of.addRow(quoteCode(name), kind, quoteAll(strings.FieldsFunc(labels, func(r rune) bool { return r == ',' })), escapeText(help))
	}
	return "### Members\n\n" + member.String() + "\n### Clusters\n\n" +
		"These metrics describe a cluster, as the member sees it. A member on SQLite has none of them.\n\n" + cluster.String(), nil
}
