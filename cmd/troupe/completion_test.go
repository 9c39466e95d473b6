package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompletionKnowsEveryCommand(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := call(t, "completion", shell)
		require.Equal(t, 0, got.code)
		for _, word := range []string{"serve", "demo", "apply", "history", "--store", "--idle-after", "json", "__complete"} {
			if shell == "fish" {
				word = strings.TrimPrefix(word, "--")
			}
			require.Contains(t, got.stdout, word, shell)
		}
		require.NotContains(t, got.stdout, "with-stdin", "hidden flags stay so")
	}
}

func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return // nobody to complete for
	}
	script := call(t, "completion", "bash").stdout
	for line, want := range map[string]string{
		"troupe fl":                      "flow",
		"troupe task st":                 "start",
		"troupe task list --st":          "--state",
		"troupe task list --output ":     "table json",
		"troupe --help task watch --tok": "--token",
		"troupe completion z":            "zsh",
	} {
		words := strings.Split(line, " ")
		cmd := exec.Command(bash, append([]string{"-c", script + `
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _troupe; echo "${COMPREPLY[*]}"`, "bash"}, words...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, want, strings.TrimSpace(string(out)), line)
	}
}

func TestValuesAreCompletedByTheServer(t *testing.T) {
	at := server(t)
	task := strings.TrimSpace(call(t, append([]string{"task", "start", "approve"}, at...)...).stdout)
	url := at[1]
	t.Setenv("TROUPE_SERVER", url)
	for typed, want := range map[string]string{
		"flow show ":                "approve double",
		"flow delete double ":       "approve double",
		"task list --flow ":         "approve double",
		"task list --state ":        "pending running completed failed canceling canceled paused",
		"task show ":                task,
		"task signal " + task[:20]:  task,
		"task signal " + task + " ": "",
		"task start -p n=1 ":        "approve double",
		"worker show ":              "troupe-",
		"cluster drain ":            "troupe-",
		"serve ":                    "",
		"task list --flow approve --since 3d --flow ": "approve double",
	} {
		words := strings.Split(typed, " ")
		got := call(t, append([]string{"__complete", "--"}, words...)...)
		require.Equal(t, 0, got.code, typed)
		values := []string{}
		for line := range strings.Lines(got.stdout) {
			value, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			values = append(values, value)
		}
		slices.Sort(values)
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		if want == "troupe-" {
			require.Len(t, values, 1, typed)
			require.Contains(t, values[0], want)
			continue
		}
		require.Equal(t, wanted, values, typed)
	}
	require.Equal(t, result{}, call(t, "__complete", "--", "task", "show", "--server", "http://127.0.0.1:1", ""), "nobody is there to be asked")

	bash, err := exec.LookPath("bash")
	if err != nil {
		return // nobody to complete for
	}
	for typed, want := range map[string]string{
		"task start dou": "double", "task list --state f": "failed", "worker list --state o": "online offline", "task list -o j": "json", "import pocketflow -o t": "text",
	} {
		cmd := exec.Command(bash, append([]string{"-c", call(t, "completion", "bash").stdout + `
COMP_WORDS=("$0" "$@"); COMP_CWORD=$#; _troupe; echo "${COMPREPLY[*]}"`, binary}, strings.Split(typed, " ")...)...)
		cmd.Env = append(os.Environ(), "TROUPE_SERVER="+url)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, want, strings.TrimSpace(string(out)), typed)
	}
}

func TestHelpIsNoFailure(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"task", "start", "--help"}, {"serve", "--help"}} {
		got := call(t, args...)
		require.Equal(t, 0, got.code, args)
		require.Contains(t, got.stdout, "Usage: troupe")
		require.Empty(t, got.stderr)
	}
}

func TestTheVersionIsACommandAndAFlag(t *testing.T) {
	told := call(t, "version")
	require.Contains(t, told.stdout, "troupe ")
	require.Equal(t, told, call(t, "--version"))
	require.Contains(t, call(t, "--help").stdout, "also --version")
	// Behind a command it is the version of a flow.
	got := call(t, "task", "start", "x", "--version=2", "--server", "http://127.0.0.1:1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "no server answers")
}
