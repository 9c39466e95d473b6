package sdk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// binary is the built command.
var binary string

func TestMain(m *testing.M) { os.Exit(build(m)) }

// build makes the command that the SDKs are tested against, then runs the tests.
func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "troupe-sdk-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "troupe")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/troupe").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func TestPython(t *testing.T) {
	t.Parallel() // it waits for most of its time
	need(t, "python3", 3, 9)
	run(t, "python", "python3", "-W", "error::ResourceWarning", "-m", "unittest")
}

// need fails a test on a machine that lacks a program, and says what to install.
func need(t *testing.T, program string, major, minor int) {
	t.Helper()
	wanted := fmt.Sprintf("the SDKs are tested with %s %d.%d or newer: install it", program, major, minor)
	out, err := exec.Command(program, "--version").Output()
	require.NoError(t, err, "%s", wanted)
	found := regexp.MustCompile(`(\d+)\.(\d+)`).FindStringSubmatch(string(out))
	require.NotNil(t, found, "%s says %q; %s", program, out, wanted)
	version := make([]int, 2)
	for i := range version {
		version[i], err = strconv.Atoi(found[i+1])
		require.NoError(t, err)
	}
	require.False(t, version[0] < major || version[0] == major && version[1] < minor, "here is %s %s; %s", program, found[0], wanted)
}

// run runs the tests of an SDK in its folder.
func run(t *testing.T, folder, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = folder
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TROUPE_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "TROUPE_BINARY="+binary, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `(?m)^Ran [1-9]`, string(out), "no test was run")
}
