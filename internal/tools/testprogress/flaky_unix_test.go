//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runFlaky runs scripts/flaky.sh in a module of its own, because the script replaces the logs of
// the repository it is in. It returns the output, whether the script succeeded, and the folder.
func runFlaky(t *testing.T, files map[string]string, env ...string) (out string, passed bool, dir string) {
	dir = t.TempDir()
	script, err := os.ReadFile("../../../scripts/flaky.sh")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "scripts"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scripts", "flaky.sh"), script, 0o755))
	files["go.mod"] = "module github.com/troupe-engine/troupe\n\ngo 1.24\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	cmd := exec.Command(filepath.Join(dir, "scripts", "flaky.sh"))
	cmd.Env = append(os.Environ(), append([]string{"LOOPS=1", "EACH=60", "RACE="}, env...)...)
	said, err := cmd.CombinedOutput()
	return string(said), err == nil, dir
}

// testOf returns a file with one test.
func testOf(name, body string) string {
	return "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Args\n\nfunc " + name +
		"(t *testing.T) {\n" + body + "\n}\n"
}

func TestFlakySucceedsWhenEachRunPasses(t *testing.T) {
	out, passed, _ := runFlaky(t, map[string]string{"a/a_test.go": testOf("TestFine", ""),
		"b/b.go": "package b\n"}, "COUNT=2")
	require.True(t, passed, out)
	require.Contains(t, out, "Running 1 packages up to 2 times each, beside 1 busy loops, for at most 240 minutes.\n")
	require.Regexp(t, `(?m)^1/1 a: 0 of 2 runs failed, \d+ s each$`, out)
	require.True(t, strings.HasSuffix(out, "No run failed.\n"), out)
}

func TestFlakyNamesTheTestsThatFailAndKeepsTheirOutput(t *testing.T) {
	once := "\tif _, err := os.Stat(\"ran\"); err != nil {\n\t\tos.WriteFile(\"ran\", nil, 0o600)\n" +
		"\t\treturn\n\t}\n\tt.Fatal(\"the second run\")"
	out, passed, dir := runFlaky(t, map[string]string{"a/a_test.go": testOf("TestFine", ""),
		"b/c/c_test.go": testOf("TestEverySecond", once), "d/d_test.go": "package d\n\nfunc {\n"}, "COUNT=2")
	require.False(t, passed, out)
	require.Contains(t, out, "a: 0 of 2 runs failed")
	require.Contains(t, out, "failed in run 2 of b/c: TestEverySecond")
	require.Contains(t, out, "b/c: 1 of 2 runs failed")
	require.Contains(t, out, "d_test.go:3:6: ", "a package that cannot be built fails, too")
	require.Contains(t, out, "FAIL: 2 runs failed; their output is in logs/flaky\n")
	kept, err := os.ReadFile(filepath.Join(dir, "logs/flaky/b-c-2.log"))
	require.NoError(t, err)
	require.Contains(t, string(kept), "the second run")
}

func TestFlakyNamesPackagesThatItDidNotReach(t *testing.T) {
	out, passed, _ := runFlaky(t, map[string]string{"a/a_test.go": testOf("TestFine", "")}, "COUNT=1", "TOTAL=0")
	require.True(t, passed, out)
	require.Contains(t, out, "not reached: a\n")
}

func TestFlakyRunsASlowPackageOnce(t *testing.T) {
	out, passed, _ := runFlaky(t, map[string]string{"a/a_test.go": testOf("TestFine", "")}, "COUNT=5", "EACH=0")
	require.True(t, passed, out)
	require.Contains(t, out, "a: 0 of 1 runs failed")
}
