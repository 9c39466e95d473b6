package ork_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/flow"
)

// TestFilesBesideAWorkflowApply compares the translations of folders, and the problems of invalid
// files, with golden files.
func TestFilesBesideAWorkflowApply(t *testing.T) {
	folders, err := filepath.Glob("testdata/beside/*")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(folder, "workflow.yaml"))
			require.NoError(t, err)
			require.True(t, ork.Is(text))
			var told bytes.Buffer
			w, problems := ork.Translate(text, ork.Options{Root: "/srv/flows", Files: os.DirFS(folder)})
			for _, p := range problems {
				told.WriteString(p.String() + "\n")
			}
			require.Equal(t, strings.HasSuffix(folder, "wrong"), w.Definition == nil, "%v", problems)
			if w.Definition != nil {
				require.NoError(t, json.Indent(&told, w.Definition, "", "  "))
				_, problems := compile.Text(w.Definition, flow.Limits{})
				require.NoError(t, problems.Err())
				told.WriteString("\n")
			}
			requireGolden(t, filepath.Join(folder, "golden"), told.String())
		})
	}
}

func requireGolden(t *testing.T, file, told string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(told), 0o644))
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(kept), told, "go test ./dialect/ork -update writes it anew")
}

func TestAWorkflowMayConsistOfImports(t *testing.T) {
	text := []byte("name: w\nimport: [{dbt: transform}]\n")
	require.True(t, ork.Is(text))
	w, problems := ork.Translate(text,
		ork.Options{Files: fstest.MapFS{"transform/dbt_project.yml": {Data: []byte("name: x")},
			"transform/models/a.sql": {}}})
	require.NoError(t, problems.Err())
	require.Equal(t, []ork.Task{{Name: "dbt.a", Key: "dbt_a", Executor: "process", DependsOn: []string{}}}, w.Tasks)

	_, problems = ork.Translate(text, ork.Options{})
	require.ErrorContains(t, problems.Err(),
		"2:16: import[0].dbt: projects are not read here: publish the workflow from a file, or "+
			"on a server that starts programs (--allow-scripts)")
}

func TestUnreadFilesAreReported(t *testing.T) {
	_, problems := ork.Translate([]byte("name: w\ntasks: {a: {executor: bigquery}}\n"), ork.Options{})
	require.ErrorContains(t, problems.Err(), "Unknown executor type: bigquery; if ork.yaml names it, that is not read here")
}

func TestWorkersMayComeFromAnotherFile(t *testing.T) {
	text := []byte("name: w\ntasks: {a: {executor: process, command: ls, worker: big}}\n")
	beside := fstest.MapFS{"workers.yaml": {Data: []byte("workers: {big: {memory: 1Gi}}")}}
	w, problems := ork.Translate(text, ork.Options{Files: beside,
		Workers: ork.Beside{Name: "workers.yaml", Text: []byte("workers: {big: {memory: 2Gi}}")}})
	require.NoError(t, problems.Err())
	require.Contains(t, string(w.Definition), `"memory":"2Gi"`)
	_, problems = ork.Translate(text, ork.Options{})
	require.ErrorContains(t, problems.Err(),
		"there is no worker big: name it in a workers.yaml beside the workflow, with what its tasks may use")
}

func TestFilesBesideWorkflowsAreRecognized(t *testing.T) {
	for name, text := range map[string]string{"ork.yaml": "executors: {}", "workers.yaml": "", "locations.yaml": "locations: []"} {
		require.True(t, ork.IsBeside(name, []byte(text)), name)
		require.False(t, ork.IsBeside("x.yaml", []byte(text)), name)
		require.False(t, ork.IsBeside(name, []byte("tasks: {}")), name)
	}
}

func TestFilesBesideWorkflowsAreChecked(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"ork.yaml": {"executors: {a: {type: x:Y}}\nenv_file: .env\n",
			"2:11: note: env_file: is read by troupe dev alone, since all of a flow can be seen " +
				"by whoever sees the flow: start another member with these variables and " +
				"--child-env, or keep them as secrets"},
		"workers.yaml": {"default: x\n", "1:10: default: there is no worker x"},
		"locations.yaml": {"locations:\n  - {name: etl, refresh: x}\n",
			"1:1: warning: locations: images are not searched for workflows: take the files out " +
				"of the image, and publish them with troupe flow apply\n2:5: locations[0]: has no image"},
	} {
		var told []string
		for _, p := range ork.CheckBeside(ork.Beside{Name: name, Text: []byte(tt.text)}) {
			told = append(told, p.String())
		}
		require.Equal(t, tt.want, strings.Join(told, "\n"), name)
	}
	problems := ork.CheckBeside(ork.Beside{Name: "ork.yaml", Text: []byte("[1]")})
	require.ErrorContains(t, problems.Err(), "must be an object, is an array")
}
