package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const warehouse = `name: warehouse
import:
  - {dbt: ./transform, models: [staging.*, fct_sales]}
tasks:
  seed: {executor: dbt-seed, config: {select: [countries]}}
  dbt.staging.stg_orders: {depends_on: [seed]}
`

func TestModelsOfAProjectAreRunByTheBinary(t *testing.T) {
	dir := folderWith(t, map[string]string{"w.yaml": warehouse,
		"ork.yaml": "executors: {dbt: {type: dbt, config: {profiles_dir: ~/.dbt, target: prod}}}\n"})
	project := filepath.Join(dir, "transform")
	require.NoError(t, os.CopyFS(project, os.DirFS(filepath.Join(repository, "dialect", "ork", "dbt", "testdata", "plain"))))
	require.NoError(t, os.WriteFile(filepath.Join(project, "dbt"), []byte("#!/bin/sh\necho \"$*\" >> ../calls\n"), 0o755))
	_, url := startBinary(t, "--allow-scripts", "--script-dir", dir)
	got := call(t, "flow", "run", filepath.Join(dir, "w.yaml"), "--server", url)
	require.Equal(t, 0, got.code, got.stdout+got.stderr)
	answer, err := http.Get(url + "/api/workflows/warehouse")
	require.NoError(t, err)
	defer answer.Body.Close()
	var known struct {
		Tasks []struct {
			Name      string
			DependsOn []string `json:"depends_on"`
		}
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&known))
	graph := map[string][]string{}
	for _, one := range known.Tasks {
		graph[one.Name] = one.DependsOn
	}
	require.Equal(t, map[string][]string{
		"seed": {}, "dbt.staging.stg_payments": {}, "dbt.staging.stg_orders": {"seed"},
		"dbt.staging.stg_customers": {"dbt.staging.stg_orders"},
		"dbt.marts.fct_sales": {"dbt.staging.stg_orders", "dbt.staging.stg_customers",
			"dbt.staging.stg_payments"},
	}, graph)
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(calls)), "\n")
	require.Contains(t, lines, "run --models stg_payments --target prod", "it waits for nothing")
	require.Equal(t, []string{"seed --select countries --target prod",
		"run --models stg_orders --target prod", "run --models stg_customers --target prod",
		"run --models fct_sales --target prod"},
		slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "stg_payments") }))
}
