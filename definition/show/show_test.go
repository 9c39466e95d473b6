package show_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

var update = flag.Bool("update", false, "write what is shown anew")

// TestPlansAreShown renders the definitions in testdata; `go test -update` rewrites the golden
// files.
func TestPlansAreShown(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			v := show.Plan(flowtest.Plan(t, string(text)), name)
			for kind, shown := range map[string]string{"txt": v.Text(), "mmd": v.Mermaid(), "dot": v.Graphviz(), "json": string(v.JSON())} {
				kept := strings.TrimSuffix(file, "yaml") + kind
				if *update {
					require.NoError(t, os.WriteFile(kept, []byte(shown), 0o644))
				}
				want, err := os.ReadFile(kept)
				require.NoError(t, err)
				require.Equal(t, string(want), shown, kept)
			}
		})
	}
}

func TestTextsOfUsersDoNotBreakDiagrams(t *testing.T) {
	key := "a\"]; \\ <b> | #1 & `x` 'ü'"
	encoded, err := json.Marshal(key)
	require.NoError(t, err)
	v := show.Plan(flowtest.Plan(t, `{"start":`+string(encoded)+`,"nodes":{`+string(encoded)+`:{"service":"x\"y"}}}`), "\"quoted\"")
	require.Contains(t, v.Mermaid(), `n1["a#quot;]; \ #lt;b#gt; | #35;1 #amp; `+"`x` 'ü'"+`<br/>executor push:x#quot;y"]`)
	require.Contains(t, v.Graphviz(), `n1 [label="a\"]; \\ <b> | #1 & `+"`x` 'ü'"+`\nexecutor push:x\"y"]`)
	require.Contains(t, v.Graphviz(), `digraph "\"quoted\"" {`)
}
