package tidy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	sourceFile  = regexp.MustCompile("`([A-Za-z0-9_./-]+/[A-Za-z0-9_.-]+\\.(?:go|ts|tsx|py|sql|sh|json))`")
	functionRow = regexp.MustCompile("\\| `(\\w+)` \\| `([\\w./-]+\\.go)` \\|$")
)

// listMissingPlaces returns the source files that a document names and that do not exist, and the
// functions of its tables that their files do not declare. A row of such a table ends with the
// function and its file.
func listMissingPlaces(document, root string) []string {
	var missing []string
	for line := range strings.Lines(document) {
		for _, m := range sourceFile.FindAllStringSubmatch(line, -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil {
				missing = append(missing, fmt.Sprintf("%s: there is no such file", m[1]))
			}
		}
		m := functionRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m[2])))
		if err == nil && !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+m[1]+`[(\[]`).Match(source) {
			missing = append(missing, fmt.Sprintf("%s: there is no function %s", m[2], m[1]))
		}
	}
	return missing
}
