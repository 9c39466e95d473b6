package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const orkWorkflow = `name: nightly
tasks:
  a-b: {executor: process, command: "echo 'ORK_OUTPUT:[1,2]'"}
  load: {executor: process, command: "echo $ORK_ITEM_JSON", foreach: a-b}
`

// folderWith makes a folder with files.
func folderWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func TestFaultsInFilesBesideWorkflowsHaveTheirOwnPlace(t *testing.T) {
	dir := folderWith(t, map[string]string{
		"w.yaml":                     "name: w\nimport: [{dbt: shop}]\ntasks: {a: {executor: loud}}\n",
		"ork.yaml":                   "executors:\n  loud: {type: louder}\n",
		"shop/dbt_project.yml":       "name: shop\n",
		"shop/models/x/orders.sql":   "select *\nfrom {{ ref(name) }}\n",
		"shop/models/customers.sql":  "select 1\n",
		"shop/models/x/.keep":        "",
		"shop/target/compiled/a.sql": "{{",
	})
	got := call(t, "flow", "validate", filepath.Join(dir, "w.yaml"))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, filepath.Join(dir, "shop", "models", "x",
		"orders.sql")+":2:9: error: only dbt knows what this refers to")
	require.Contains(t, got.stdout, filepath.Join(dir, "ork.yaml")+":2:16: error: executors.loud.type: Unknown executor type: louder")
}

func TestFilesBesideWorkflowsAreCheckedAsThemselves(t *testing.T) {
	dir := folderWith(t, map[string]string{"w.yaml": orkWorkflow,
		"ork.yaml": "validation: {enabled: false}\n", "else/workers.yaml": "default: x\n"})
	got := call(t, "flow", "validate", dir)
	require.Zero(t, got.code, got.stdout)
	require.Contains(t, got.stdout, filepath.Join(dir, "ork.yaml")+": valid (beside workflows of Ork)\n")
	require.Contains(t, got.stdout, filepath.Join(dir, "w.yaml")+": valid (a workflow of Ork)\n")
	file := filepath.Join(dir, "else", "workers.yaml")
	got = call(t, "flow", "validate", file)
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, file+":1:10: error: default: there is no worker x\n", got.stdout)
}

func TestTheOperatorMayConfigureWorkersOfOrk(t *testing.T) {
	dir := folderWith(t, map[string]string{"w.yaml": "name: w\ntasks: {a: {executor: process, " +
		"command: ls, worker: big}}\n", "all.yaml": "workers: {big: {timeout: 77}}\n"})
	file := filepath.Join(dir, "w.yaml")
	require.Equal(t, exitFailed, call(t, "flow", "validate", file).code)
	t.Setenv("ORK_WORKERS_CONFIG", filepath.Join(dir, "all.yaml"))
	url := startServe(t)
	got := call(t, "flow", "apply", file, "--server", url)
	require.Zero(t, got.code, got.stdout+got.stderr)
	require.Contains(t, call(t, "flow", "show", "w", "--server", url).stdout, "77")

	answer, err := http.Post(url+"/workflows", "application/x-yaml",
		strings.NewReader("name: sent\ntasks: {a: {executor: process, command: ls, worker: big}}\n"))
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

func TestRemoteWorkersOfOrkAreReportedAtTheStart(t *testing.T) {
	t.Setenv("ORK_WORKERS_CONFIG", "gs://bucket/workers.yaml")
	got := call(t, "serve", "--listen", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(t.TempDir(), "t.db"))
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "--ork-workers (ORK_WORKERS_CONFIG): the file "+
		"gs://bucket/workers.yaml does not exist on this host: copy it here")
}

func TestAWorkflowFileOfOrkIsChecked(t *testing.T) {
	got := call(t, "flow", "validate", write(t, "w.yaml", orkWorkflow))
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, `w.yaml:4:70: warning: tasks.load.foreach: "a-b" makes a-b a dependency: add it to depends_on`)
	require.Contains(t, got.stdout, "w.yaml: valid (a workflow of Ork)\n")

	got = call(t, "flow", "validate", write(t, "w.yaml", orkWorkflow+"  c: {executor: process, command: ls, depends_on: [nobody]}\n"))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, "w.yaml:5:52: error: tasks.c.depends_on[0]: task c depends on unknown task nobody")
}
