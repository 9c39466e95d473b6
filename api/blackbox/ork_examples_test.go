package blackbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// stated is the expectation beside an example workflow: the status of its run, and the outputs of
// its tasks.
type stated struct {
	Input any    `json:"input"`
	Run   string `json:"run"`
	// of successful tasks; a list for a task with several instances
	Outputs map[string]any    `json:"outputs"`
	Errors  map[string]string `json:"errors"` // of failed tasks; a part of the text
	Skipped []string          `json:"skipped"`
}

func orkExamples(c *client) {
	if runtime.GOOS == "windows" {
		return // some lines need a Unix shell
	}
	files, err := filepath.Glob("../../examples/ork/*.yaml")
	require.NoError(c, err)
	require.Len(c, files, 9)
	root, err := filepath.Abs("../../examples/ork")
	require.NoError(c, err)
	runs := map[string]*orkRun{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(c, err)
		answer := c.post("/workflows", obj{"yaml": string(text), "root": root})
		require.Nil(c, answer["warnings"], "%s", file)
		f := &orkFlow{client: c, name: answer["name"].(string), root: root}
		runs[file] = f.start(statedFor(c, file).Input)
	}
	for file, r := range runs {
		r.holds(statedFor(c, file))
	}
}

func statedFor(c *client, file string) (s stated) {
	c.Helper()
	text, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".json")
	require.NoError(c, err)
	require.NoError(c, json.Unmarshal(text, &s), "%s", file)
	return s
}

// holds requires the stated result of a run.
func (r *orkRun) holds(s stated) {
	r.Helper()
	r.ends(s.Run)
	for name, status := range r.statuses() {
		switch {
		case s.Errors[name] != "":
			require.Equal(r, "failed", status, "%s of %s", name, r.name)
			require.Contains(r, r.task(name)["error"], s.Errors[name], "%s of %s", name, r.name)
		case slices.Contains(s.Skipped, name):
			require.Equal(r, "skipped", status, "%s of %s", name, r.name)
		default:
			require.Equal(r, "success", status, "%s of %s: %v", name, r.name, r.task(name)["error"])
		}
	}
	for name, want := range s.Outputs {
		require.Equal(r, want, r.output(name), "%s of %s", name, r.name)
	}
}

// output returns the output of a task, or a list of those of its instances.
func (r *orkRun) output(name string) any {
	r.Helper()
	all := r.tasks(name)
	require.NotEmpty(r, all, name)
	if all[0]["parallel_index"] == nil {
		return all[0]["output"]
	}
	return values(all, "output")
}
