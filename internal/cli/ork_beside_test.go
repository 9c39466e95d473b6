package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// besideAll holds the files beside workflows, with every field that Ork documents.
var besideAll = map[string]string{
	"ork.yaml": `executors:
  loud: {type: process}
env_file: .env
api: {url: "http://localhost:8080", auth: {type: api_key, header: X-API-Key, value: secret}}
notifications: {on_failure: [{email: a@example.com}]}
validation: {enabled: false}
`,
	"workers.yaml": `workers:
  small: {service_account: a@p, vpc_connector: c, cpu: 1, memory: 64Mi, timeout: 55}
default: small
`,
	"locations.yaml": `locations:
  - {name: etl, image: "registry/etl:latest", refresh: "*/5 * * * *"}
`,
	"w.yaml": `name: w
tasks:
  a: {executor: loud, command: "echo 'ORK_OUTPUT:1'", output_type: str}
`,
}

// execute runs the binary like a user.
func execute(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestEachFieldOfFilesBesideWorkflowsHasAnEffectOrAWarning(t *testing.T) {
	dir := folderWith(t, besideAll)
	told := execute(t, "flow", "validate", dir)
	for field, words := range map[string]string{
		"env_file":                      "is read by troupe dev alone",
		"api":                           "nobody is asked because of this: --server and --token",
		"notifications":                 "nobody is told because of this: troupe hook set",
		"workers.small.service_account": "is not applied to programs of this server",
		"workers.small.vpc_connector":   "is not applied to programs of this server",
		"workers.small.cpu":             "is not applied to programs that are no containers",
		"locations":                     "images are not searched for workflows",
	} {
		require.Regexp(t, `(?m): (warning|note): `+field+`: `+words, told)
	}
	for _, field := range []string{"executors", "validation", "workers.small.memory", "workers.small.timeout", "default"} {
		require.NotRegexp(t, `: `+field+`\b`, told, "it is carried out")
	}

	url := startServe(t)
	execute(t, "flow", "apply", filepath.Join(dir, "w.yaml"), "--server", url)
	published := strings.Join(strings.Fields(execute(t, "flow", "show", "w", "--server", url)), "")
	require.Contains(t, published, `"type":"process"`, "an executor by its name")
	require.Contains(t, published, `"memory":"64Mi"`)
	require.Contains(t, published, `"timeout":55`)
	require.NotContains(t, published, "output_type", "outputs are not compared with their types")
}
