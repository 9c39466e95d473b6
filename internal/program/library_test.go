package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/internal/testing/built"
)

// libraryOf compiles a library whose function executes a statement and returns a C expression.
func libraryOf(t *testing.T, dir, name, does, returns string) string {
	t.Helper()
	source := fmt.Sprintf(`#include <stdio.h>
#include <stdlib.h>
#include <string.h>
char *ork_task_run(const char *input) { %s; return %s; }
void ork_task_free(char *text) { free(text); }
`, does, returns)
	file := filepath.Join(dir, name+".c")
	write(t, file, source, 0o600)
	out, err := exec.Command("cc", "-shared", "-fPIC", "-o", filepath.Join(dir, name+".so"), file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return name + ".so"
}

// needsC skips a test where no C compiler is installed.
func needsC(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no compiler of C")
	}
}

func TestLibraries(t *testing.T) {
	needsC(t)
	t.Run("loaded by Python", libraries)
	t.Run("loaded by a program of ours", func(t *testing.T) {
		withoutPython(t)
		libraries(t)
	})
}

// withoutPython lets a test use troupe-library without Python.
func withoutPython(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, built.Program(filepath.Join(dir, "troupe-library"), "../../cmd/troupe-library"))
	cc, err := exec.LookPath("cc")
	require.NoError(t, err)
	real, err := filepath.EvalSymlinks(cc)
	require.NoError(t, err)
	for name, program := range map[string]string{"cc": real, "as": "as", "ld": "ld"} {
		path, err := exec.LookPath(program)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	t.Setenv("PATH", dir)
}

func TestLibraryWithoutALoaderReportsTheMissingProgram(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.so"), "", 0o600)
	t.Setenv("PATH", dir)
	res := runIn(t, dir, program.Job{Type: flow.ExecLibrary, Program: &flow.Program{File: "x.so"}})
	require.Equal(t, "a library is loaded by Python, or by troupe-library beside this program: "+
		"there is no python3 on the search path, and no troupe-library", res.Error)
}

func libraries(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ does, returns, output, failure string }{
		"its input":         {"", `strdup(input)`, `{"n":1}`, ""},
		"a marked one":      {"", `strdup("ORK_OUTPUT: [1,\n 1.10]")`, "[1,  1.10]", ""},
		"its own word":      {"", `strdup("ORK_OUTPUT:{\"error\":\"kept\"}")`, `{"error":"kept"}`, ""},
		"an error":          {"", `strdup("{\"error\":\"no such table\"}")`, "", "no such table"},
		"an error among":    {"", `strdup("{\"error\":\"x\",\"n\":1}")`, `{"error":"x","n":1}`, ""},
		"nothing":           {"", "NULL", "", "Task returned null pointer"},
		"no JSON":           {"", `strdup("hello")`, "", "the library returned what is no JSON: hello"},
		"NaN":               {"", `strdup("NaN")`, "", "the library returned what is no JSON: NaN"},
		"a crash":           {`*(volatile int *)0 = 1`, "NULL", "", "signal: segmentation fault"},
		"what it prints":    {`puts("ORK_OUTPUT:7")`, `strdup("8")`, "8", ""},
		"an exit by itself": {`exit(3)`, "NULL", "", "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			file := libraryOf(t, dir, strings.ReplaceAll(name, " ", "-"), tt.does, tt.returns)
			var log strings.Builder
			res := runIn(t, dir, program.Job{Type: flow.ExecLibrary,
				Program: &flow.Program{File: file}, Input: json.RawMessage(`{"n":1}`), Stdout: &log})
			require.Equal(t, tt.output, string(res.Output), res.Error)
			require.Equal(t, tt.failure, strings.TrimSuffix(res.Error, " (core dumped)"))
			require.Contains(t, log.String(), "Loading library: "+filepath.Join(dir, file)+"\n")
		})
	}
}

func TestALibraryGetsALargeInput(t *testing.T) {
	needsC(t)
	dir := t.TempDir()
	file := libraryOf(t, dir, "size", `char *text = malloc(32); sprintf(text, "%zu", strlen(input))`, "text")
	res := runIn(t, dir, program.Job{Type: flow.ExecLibrary, Program: &flow.Program{File: file},
		Input: json.RawMessage(`"` + strings.Repeat("x", 300_000) + `"`)})
	require.Equal(t, "300002", string(res.Output), res.Error)
}

func TestALibraryThatCannotBeLoaded(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "text.so"), "no library", 0o600)
	for file, want := range map[string]string{"none.so": `there is no file "none.so" in`,
		"text.so": filepath.Join(dir, "text.so"), "../x.so": "outside of its root"} {
		res := runIn(t, dir, program.Job{Type: flow.ExecLibrary, Program: &flow.Program{File: file}})
		require.Contains(t, res.Error, want)
		require.Nil(t, res.Output)
	}
}
