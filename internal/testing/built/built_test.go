package built

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program creates a module of one file in a folder of its own.
func program(t *testing.T, says string) (dir string) {
	dir = t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module says\n")
	write(t, filepath.Join(dir, "says.go"), "package main\n\nfunc main() { print(`"+says+"`) }\n")
	return dir
}

func write(t *testing.T, file, text string) {
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func said(t *testing.T, file string) string {
	out, err := exec.Command(file).CombinedOutput()
	require.NoError(t, err)
	return string(out)
}

// builtAgain reports whether a build has replaced the file.
func builtAgain(t *testing.T, file string) bool {
	before, err := os.Stat(file)
	require.NoError(t, err)
	require.NoError(t, buildProgram(file, ".", nil))
	after, err := os.Stat(file)
	require.NoError(t, err)
	return !os.SameFile(before, after)
}

func TestAProgramIsAlwaysThatOfItsSources(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the user's cache is elsewhere")
	}
	packages, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	t.Setenv("GOCACHE", strings.TrimSpace(string(packages)))
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	dir, file := program(t, "one"), filepath.Join(t.TempDir(), "program")
	t.Chdir(dir)
	require.NoError(t, Program(file, "."))
	require.Equal(t, "one", said(t, file))

	kept, err := filepath.Glob(filepath.Join(cache, "troupe-tests", "*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.False(t, builtAgain(t, file), "it is up to date")
	write(t, "says.go", "package main\n\nfunc main() { print(`two`) }\n")
	require.NoError(t, Program(file, "."))
	require.Equal(t, "two", said(t, file))
	write(t, "says.go", "package main\n\nfunc main() { print(`three`) }\n")
	require.True(t, builtAgain(t, file), "it is not")
	write(t, kept[0], "no program")
	require.NoError(t, Program(file, "."))
	require.Equal(t, "three", said(t, file), "whatever is kept")
	require.Error(t, Program(file, "./nothing"))
}
