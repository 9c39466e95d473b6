package borders

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dialectUsers lists the files outside of a dialect's folder that use it. To delete a dialect,
// delete its folder, its row here and in the table, and what uses it in these files.
var dialectUsers = map[string][]string{
	"dialect/pgflow":     {"dialects.go"},
	"dialect/pocketflow": {"dialects.go", "internal/cli/operate/import.go"},
	"dialect/ork": {"dialects.go", "internal/cli/serve/env_file.go", "internal/cli/flows/flows.go", "internal/cli/flows/folder.go",
		"internal/cli/flows/labels.go", "internal/cli/flows/ork.go", "internal/cli/flows/ork_schema.go",
		"internal/cli/flows/validate.go", "internal/cli/workers/ork.go"},
}

// fileImports returns the imports of a file from this module.
func fileImports(t *testing.T, file string) (paths []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	require.NoError(t, err)
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		if isOurs(path) {
			paths = append(paths, localPath(path))
		}
	}
	return paths
}

func TestADialectIsUsedOnlyWhereItIsJoined(t *testing.T) {
	found := map[string][]string{}
	for _, p := range listPackages(t) {
		for _, name := range p.GoFiles {
			for _, path := range fileImports(t, filepath.Join(p.Dir, name)) {
				parts := strings.Split(path, "/")
				if parts[0] != "dialect" {
					continue
				}
				dialect := strings.Join(parts[:2], "/")
				file := strings.TrimPrefix(p.localName()+"/"+name, "./")
				if !isBelow(dialect, p.localName()) && !slices.Contains(found[dialect], file) {
					found[dialect] = append(found[dialect], file)
				}
			}
		}
	}
	require.Len(t, found, len(dialectUsers))
	for dialect, files := range dialectUsers {
		require.ElementsMatch(t, files, found[dialect], dialect)
	}
}
