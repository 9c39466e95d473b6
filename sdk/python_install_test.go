package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// pythonClone is a clone of the repository that has the Python SDK alone.
type pythonClone struct {
	*testing.T
	dir string
}

func newPythonClone(t *testing.T) pythonClone {
	t.Helper()
	need(t, "python3", 3, 9)
	c := pythonClone{t, t.TempDir()}
	require.NoError(t, os.CopyFS(c.path(""), os.DirFS("python")))
	ignored, err := os.ReadFile("../.gitignore")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, ".gitignore"), ignored, 0o644))
	c.command("", "git", "init", "--quiet")
	c.command("", "git", "add", ".")
	c.command("", "git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "--message", "all")
	return c
}

// path returns a path of the SDK in the clone.
func (c pythonClone) path(name string) string { return filepath.Join(c.dir, "sdk", "python", name) }

// command runs a command in the clone, or elsewhere with a PYTHONPATH, and returns its output.
func (c pythonClone) command(pythonPath, program string, args ...string) string {
	c.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "PYTHONDONTWRITEBYTECODE=", "GIT_CONFIG_GLOBAL="+os.DevNull)
	if pythonPath != "" {
		cmd.Dir, cmd.Env = c.TempDir(), append(cmd.Env, "PYTHONPATH="+pythonPath)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(c, err, "%s", out)
	return string(out)
}

// requireImported requires that a program in another folder can use the SDK, and from where.
func (c pythonClone) requireImported(folder string) {
	c.Helper()
	out := c.command(folder, "python3", "-c", "import troupe_engine as t; t.Worker, t.Client; print(t.__file__)")
	require.Equal(c, filepath.Join(folder, "troupe_engine", "__init__.py")+"\n", out)
}

// requireUnchanged requires that git sees no file that was not there.
func (c pythonClone) requireUnchanged() {
	c.Helper()
	require.Empty(c, c.command("", "git", "status", "--porcelain"))
}

func TestPythonSDKIsUsedFromItsFolder(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("python/README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "Without a registry, use the folder as it is.")
	require.Contains(t, string(readme), "export PYTHONPATH=/path/to/troupe/sdk/python\n")
	c := newPythonClone(t)
	c.requireImported(c.path(""))
	require.DirExists(t, c.path("troupe_engine/__pycache__"))
	c.requireUnchanged()
}

// TestBuiltPythonSDKLeavesTheCloneUnchanged builds the SDK as pip does, where setuptools is
// installed. Elsewhere it writes what a build leaves behind.
func TestBuiltPythonSDKLeavesTheCloneUnchanged(t *testing.T) {
	t.Parallel()
	c := newPythonClone(t)
	const canBuild = "import setuptools; assert int(setuptools.__version__.split('.')[0]) >= 61"
	if exec.Command("python3", "-c", canBuild).Run() == nil {
		c.command("", "python3", "-c", "import os, sys, setuptools; os.chdir(sys.argv.pop(1)); setuptools.setup()", c.path(""),
			"--quiet", "egg_info", "build")
		c.requireImported(c.path("build/lib"))
		require.DirExists(t, c.path("troupe_engine.egg-info"))
	} else {
		t.Log("setuptools is not installed here")
	}
	for _, name := range []string{"build/lib/troupe_engine/client.py", "troupe_engine.egg-info/PKG-INFO", "dist/x.whl"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(c.path(name)), 0o755))
		require.NoError(t, os.WriteFile(c.path(name), nil, 0o600))
	}
	c.requireUnchanged()
}
