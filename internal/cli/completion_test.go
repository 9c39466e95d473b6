package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// asks holds, for each shell, the lines that complete a command line and print the candidates, to
// be appended to the script.
var asks = map[string]string{
	"bash": `
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _troupe; printf '%s\n' "${COMPREPLY[@]}"`,
	// Simplified functions of the completion system: candidates are the words before a colon.
	"zsh": `
compadd() { local v; for v; do [[ "$v" == "$PREFIX"* ]] && print -r -- "$v"; done }
_describe() { compadd "${(@)${(@P)2}%%:*}"; }
_files() { print files; }
words=("$@"); CURRENT=$#; PREFIX="${words[-1]}"; _troupe; true`,
	"fish": `
complete -C "$argv" | string replace -r '\t.*' ''; true`,
}

// completed returns the candidates of a shell for a line, sorted; nil if the shell is not
// installed.
func completed(t *testing.T, shell, line string, env ...string) []string {
	path, err := exec.LookPath(shell)
	if err != nil {
		return nil
	}
	script := call(t, "completion", shell).stdout + asks[shell]
	words := append([]string{shell}, strings.Split(line, " ")...)
	var args []string
	switch shell {
	case "bash":
		args = append([]string{"-c", script}, words...)
	case "zsh":
		args = append([]string{"-f", "-c", "compdef() { :; }\n" + script}, words...)
	case "fish":
		args = []string{"--no-config", "-c", script, line}
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), append(env, "HOME="+t.TempDir(),
		"PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	proposed := strings.Fields(string(out))
	slices.Sort(proposed)
	return proposed
}

func TestShellsComplete(t *testing.T) {
	for line, want := range map[string]string{
		"troupe fl":                      "flow",
		"troupe task st":                 "start stream",
		"troupe task list --st":          "--state",
		"troupe task list --output ":     "json table",
		"troupe --help task watch --tok": "--token",
		"troupe completion z":            "zsh",
		"troupe completion ":             "bash fish zsh",
	} {
		for shell := range asks {
			if got := completed(t, shell, line); got != nil {
				require.Equal(t, strings.Fields(want), got, "%s: %s", shell, line)
			}
		}
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
	require.Equal(t, result{}, call(t, "__complete", "--", "task", "show", "--server",
		"http://127.0.0.1:1", ""), "nobody is there to be asked")

	for typed, want := range map[string]string{
		"task start dou": "double", "task list --state f": "failed",
		"worker list --state o": "offline online", "task list -o j": "json", "import pocketflow -o t": "text",
	} {
		for shell := range asks {
			if got := completed(t, shell, "troupe "+typed, "TROUPE_SERVER="+url); got != nil {
				require.Equal(t, strings.Fields(want), got, "%s: %s", shell, typed)
			}
		}
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

// isExample reports whether a line of a help text shows what to type.
func isExample(line string) bool {
	return strings.HasPrefix(line, " ") || regexp.MustCompile(`^(\w+: +)?(source <\()?troupe `).MatchString(line)
}

func TestExamplesInHelpStandOnLinesOfTheirOwn(t *testing.T) {
	examples := 0
	for _, c := range CommandReferences() {
		var printed []string
		for line := range strings.Lines(call(t, append(strings.Fields(c.Name)[1:], "--help")...).stdout) {
			printed = append(printed, strings.TrimSpace(line))
		}
		for line := range strings.Lines(c.Detail) {
			if line = strings.TrimRight(line, "\n"); isExample(line) {
				examples++
				require.Contains(t, printed, strings.TrimSpace(line), "%s: indent the examples, after an empty line", c.Name)
			}
		}
	}
	require.GreaterOrEqual(t, examples, 7)
}

func TestTheVersionIsACommandAndAFlag(t *testing.T) {
	told := call(t, "version")
	require.Contains(t, told.stdout, "troupe ")
	require.Equal(t, told, call(t, "--version"))
	require.Contains(t, call(t, "--help").stdout, "also --version")
	// After a command, --version is the version of a flow.
	got := call(t, "task", "start", "x", "--version=2", "--server", "http://127.0.0.1:1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "no server answers")
}
