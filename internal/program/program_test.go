package program_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

// parents are alternative main functions of this program, selected by an environment variable.
var parents = map[string]func(string){}

func TestMain(m *testing.M) {
	for name, run := range parents {
		if with := os.Getenv(name); with != "" {
			run(with)
			return
		}
	}
	goleak.VerifyTestMain(m)
}

// run runs a program in a folder of its own.
func run(t *testing.T, p flow.Program) program.Result {
	return runIn(t, t.TempDir(), program.Job{Program: &p})
}

func runIn(t *testing.T, dir string, j program.Job) program.Result {
	if j.Type == "" {
		j.Type = flow.ExecProcess
	}
	return program.New(program.Options{Dir: dir}).Run(t.Context(), j)
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
}

func TestOutputs(t *testing.T) {
	for name, tt := range map[string]struct {
		command, mode, want string
	}{
		"nothing":                               {"true", "", ""},
		"a text is only logged":                 {"echo ok", "", ""},
		"all of it is JSON":                     {`echo; echo ' {"a":'; echo '1}'`, "", "{\"a\":\n1}"},
		"all of it is a number":                 {"echo 42", "", "42"},
		"two values are none":                   {"echo 1; echo 2", "", ""},
		"a marked line":                         {`echo noise; echo 'ORK_OUTPUT:{"a":1}'; echo noise`, "", `{"a":1}`},
		"the last one wins":                     {`echo ORK_OUTPUT:1; echo ORK_OUTPUT:bad; echo 'ORK_OUTPUT: 2 '`, "", "2"},
		"without an end of the line":            {`printf 'x\nORK_OUTPUT:3'`, "", "3"},
		"with an end of the line as of Windows": {`printf 'ORK_OUTPUT:3\r\n'`, "", "3"},
		"only marked ones, if so said":          {"echo 42", "marker", ""},
		"not on stderr":                         {"echo ORK_OUTPUT:1 >&2", "", ""},
		"not in the middle of a line":           {"echo xORK_OUTPUT:1", "", ""},
		"an error that is none":                 {`echo 'ORK_ERROR:{"message":"m"}'`, "", ""},
		"bytes that are no text":                {`printf 'ORK_OUTPUT:"a\377b"\n'`, "", "\"a\uFFFDb\""},
		"null":                                  {`echo ORK_OUTPUT:null`, "", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			res := run(t, flow.Program{Command: tt.command, OutputMode: tt.mode})
			require.Empty(t, res.Error)
			require.Equal(t, tt.want, string(res.Output))
		})
	}
}

func TestAMarkedLineThatIsNoJSONFailsTheAttempt(t *testing.T) {
	for name, tt := range map[string]struct{ command, want string }{
		"alone": {"echo ORK_OUTPUT:bad",
			"the output that the program marked is no JSON (invalid character 'b' looking for " +
				"beginning of value): ORK_OUTPUT:bad"},
		"behind an older one": {"echo ORK_OUTPUT:1; echo ORK_OUTPUT:NaN",
			"(invalid character 'N' looking for beginning of value): ORK_OUTPUT:NaN"},
		"half of one":         {`echo 'ORK_OUTPUT:{"a":'`, `(unexpected end of JSON input): ORK_OUTPUT:{"a":`},
		"nothing":             {"echo ORK_OUTPUT:", "the output that the program marked is no JSON (it is empty): ORK_OUTPUT:"},
		"a long one":          {`printf 'ORK_OUTPUT:x%0600d\n' 1`, strings.Repeat("0", 499) + "…"},
		"an exit code counts": {"echo ORK_OUTPUT:bad; echo oh >&2; exit 3", "exit status 3: oh"},
	} {
		t.Run(name, func(t *testing.T) {
			res := run(t, flow.Program{Command: tt.command})
			require.True(t, strings.HasSuffix(res.Error, tt.want), res.Error)
			require.Empty(t, res.Output)
			require.False(t, res.Fatal)
		})
	}
}

func TestLooseMarkWithoutJSONIsOnlyLogged(t *testing.T) {
	for name, tt := range map[string]struct{ command, want, err string }{
		"alone":               {"echo ORK_OUTPUT:bad", "", ""},
		"behind an older one": {"echo ORK_OUTPUT:1; echo ORK_OUTPUT:NaN", "1", ""},
		"before another one":  {"echo ORK_OUTPUT:; echo ORK_OUTPUT:2", "2", ""},
		"too large":           {`printf 'ORK_OUTPUT:"%01100000d"\n' 1`, "", "the limit of a value"},
	} {
		t.Run(name, func(t *testing.T) {
			res := run(t, flow.Program{Command: tt.command, LooseMarks: true})
			require.Equal(t, tt.want, string(res.Output))
			require.Contains(t, res.Error, tt.err)
			require.Equal(t, tt.err == "", res.Error == "")
		})
	}
}

func TestFailures(t *testing.T) {
	for name, tt := range map[string]struct{ command, want, details string }{
		"the code": {"exit 3", "exit status 3", ""},
		"the last line on stderr": {"echo a >&2; echo ' b ' >&2; echo >&2; echo c; exit 4",
			"exit status 4: b", ""},
		"a signal": {"kill -9 $$", "signal: killed", ""},
		"in its own words": {`echo 'ORK_ERROR:{"message":"old"}'; echo ` +
			`'ORK_ERROR:{"message":"m","details":{"k":1}}'; echo x >&2; exit 1`, "m", `{"k":1}`},
		"own words without message": {`echo 'ORK_ERROR:{"details":1}'; exit 1`, "exit status 1", ""},
		"bytes that are no text":    {`printf 'a\377b\n' >&2; exit 1`, "exit status 1: a\uFFFDb", ""},
		"output does not count":     {"echo ORK_OUTPUT:1; exit 1", "exit status 1", ""},
		"a program that is not": {"no-such-program-anywhere",
			"failed to start no-such-program-anywhere: it is neither in DIR nor on the search path", ""},
		"a path that is not": {"./no-such-program",
			"failed to start DIR/no-such-program: no such file or directory", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			res := runIn(t, dir, program.Job{Program: &flow.Program{Command: tt.command}})
			require.Equal(t, strings.ReplaceAll(tt.want, "DIR", dir), res.Error)
			require.Equal(t, tt.details, string(res.Details))
			require.False(t, res.Fatal)
			require.Nil(t, res.Output)
		})
	}
}

func TestWhereCommandsAreFound(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "root/own"), "#!/bin/sh\necho '\"own '$0'\"'", 0o755)
	write(t, filepath.Join(dir, "root/true"), "#!/bin/sh\necho '\"not that one\"'", 0o755)
	write(t, filepath.Join(dir, "root/in/deep er.sh"), "echo '\"deep\"'", 0o644)
	write(t, filepath.Join(dir, "root/named.py"), "#!/usr/bin/env sh\necho '\"sh '$1'\"'", 0o644)
	write(t, filepath.Join(dir, "other"), "#!/bin/sh\necho '\"other\"'", 0o755)
	for name, tt := range map[string]struct {
		p    flow.Program
		want string
	}{
		"a bare name in the root":               {flow.Program{Command: "own"}, `"own ` + dir + `/root/own"`},
		"before the search path":                {flow.Program{Command: "true"}, `"not that one"`},
		"else on the search path":               {flow.Program{Command: "pwd"}, ""},
		"a path from the root":                  {flow.Program{Command: "./own"}, `"own ` + dir + `/root/own"`},
		"an absolute one":                       {flow.Program{Command: filepath.Join(dir, "other")}, `"other"`},
		"a line, in the root":                   {flow.Program{Command: "./own | cat"}, `"own ./own"`},
		"a line without white space":            {flow.Program{Command: "exit;"}, ""},
		"a list knows no shell":                 {flow.Program{Args: []string{"echo", `"$HOME`, `;"`}}, `"$HOME ;"`},
		"a list with a bare name in the root":   {flow.Program{Args: []string{"own"}}, `"own ` + dir + `/root/own"`},
		"a file, whatever its name":             {flow.Program{File: "in/deep er.sh"}, `"deep"`},
		"a file that may not be executed":       {flow.Program{File: "named.py"}, `"sh "`},
		"a file by its absolute path":           {flow.Program{File: filepath.Join(dir, "root/own")}, `"own ` + dir + `/root/own"`},
		"the root itself, when it is not named": {flow.Program{Command: "pwd >&2; test $PWD = " + dir + "/root"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.p.Root = "root"
			res := runIn(t, dir, program.Job{Program: &tt.p})
			require.Empty(t, res.Error)
			require.Equal(t, tt.want, string(res.Output))
		})
	}
}

func TestNothingIsStartedOutsideOfTheFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "in"), 0o755))
	require.NoError(t, os.Symlink("/", filepath.Join(dir, "link")))
	write(t, filepath.Join(dir, "file"), "true", 0o755)
	for root, want := range map[string]string{
		"..": "outside", "/": "outside", "link": "outside", "in/../..": "outside", "/no/such": "outside", "none": "no such file",
	} {
		res := runIn(t, dir, program.Job{Program: &flow.Program{Command: "true", Root: root}})
		require.ErrorContains(t, errors.New(res.Error), want, root)
		require.Equal(t, want == "outside", res.Fatal, root)
	}
	res := runIn(t, dir, program.Job{Program: &flow.Program{File: "../file", Root: "in"}})
	require.Equal(t, program.Result{Error: `the file "../file" is outside of its root`, Fatal: true}, res)
	require.Empty(t, runIn(t, dir, program.Job{Program: &flow.Program{Command: "true", Root: filepath.Join(dir, "in")}}).Error)
}

func TestInputs(t *testing.T) {
	input := json.RawMessage("{\"item\": {\"n\":\n 1}, \"x\": 1.50}")
	const want = `{"item":{"n":1},"x":1.50}`
	job := program.Job{Input: input, Facts: program.Facts{Many: true}}
	for name, tt := range map[string]struct{ command, want string }{
		"on stdin, in one line":   {"cat", want},
		"the line has an end":     {"read -r line && printf %s \"$line\" && ! read -r more", want},
		"in the environment":      {`printf %s "$ORK_INPUT_JSON"`, want},
		"its item":                {`printf %s "$ORK_ITEM_JSON"`, `{"n":1}`},
		"which need not be read":  {"exec <&-", ""},
		"no file for a small one": {`test -z "${ORK_INPUT_FILE+x}"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			job := job
			job.Program = &flow.Program{Command: tt.command}
			res := runIn(t, t.TempDir(), job)
			require.Empty(t, res.Error)
			require.Equal(t, tt.want, string(res.Output))
		})
	}
	job.Program = &flow.Program{Command: "cat", StdinMode: flow.StdinNone}
	require.Empty(t, runIn(t, t.TempDir(), job).Output)
	job.Input, job.Program = nil, &flow.Program{Command: "cat"}
	require.Equal(t, "null", string(runIn(t, t.TempDir(), job).Output))
}

func TestALargeInputIsInAFile(t *testing.T) {
	large := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 300_000))
	res := runIn(t, t.TempDir(), program.Job{Input: json.RawMessage(large), Program: &flow.Program{Command: `
		cat > stdin; cat "$ORK_INPUT_FILE" > file; test -z "${ORK_INPUT_JSON+x}" || exit 1
		tr -d '\n' < stdin | cmp - file || exit 2
		test $(stat -c %a "$ORK_INPUT_FILE") = 600 || exit 3
		wc -c < file >&2
		printf 'ORK_OUTPUT:"%s"\n' "$ORK_INPUT_FILE"`}})
	require.Empty(t, res.Error)
	var path string
	require.NoError(t, json.Unmarshal(res.Output, &path))
	require.NoFileExists(t, path)
}

// listener keeps the output.
type listener struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *listener) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(b)
}

func TestOutputIsReadToItsEnd(t *testing.T) {
	var out, complaints listener
	res := runIn(t, t.TempDir(), program.Job{Stdout: &out, Stderr: &complaints, Program: &flow.Program{Command: `
		printf 'no \377 text\n'; head -c 5000000 /dev/zero | tr '\0' x; head -c 3000000 /dev/zero >&2; printf '\nORK_OUTPUT:1\n'`}})
	require.Empty(t, res.Error)
	require.Equal(t, "1", string(res.Output))
	require.Equal(t, len("no _ text\n")+5_000_000+len("\nORK_OUTPUT:1\n"), out.Len())
	require.Equal(t, 3_000_000, complaints.Len())
}

func TestTooLargeOutputIsAFailure(t *testing.T) {
	const most = 1000
	for name, tt := range map[string]struct {
		command string
		fails   bool
	}{
		"marked":                          {`printf 'ORK_OUTPUT:"%01500d"\n' 1`, true},
		"marked, and a smaller one after": {`printf 'ORK_OUTPUT:"%01500d"\n' 1; echo ORK_OUTPUT:1`, false},
		"all of it a text":                {`printf '"%01500d"' 1`, true},
		"all of it a list":                {`printf '[1,"%01500d"]' 1`, true},
		"all of it words":                 {`printf '%s' "[INFO] $(printf '%01500d' 1)]"`, false},
		"all of it numbers":               {`seq 1000`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := program.New(program.Options{MaxOutput: most})
			res := r.Run(t.Context(), program.Job{Type: flow.ExecProcess, Program: &flow.Program{Command: tt.command}})
			require.Equal(t, tt.fails, res.Fatal)
			require.Equal(t, tt.fails, res.Error != "", res.Error)
		})
	}
}

func TestCanceledProgramIsAskedToEnd(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { // ends at the start of the program at the latest
		for {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil || ctx.Err() != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		cancel(errors.New("called off"))
	}()
	res := program.New(program.Options{Dir: dir}).Run(ctx, program.Job{Type: flow.ExecProcess, Program: &flow.Program{
		Command: `trap 'echo asked > asked; exit 1' TERM; touch begun; while :; do sleep 0.05; done`}})
	require.Equal(t, "called off", res.Error)
	require.FileExists(t, filepath.Join(dir, "asked"))
}

func TestProgramIsKilledAfterItsGracePeriod(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	res := program.New(program.Options{}).Run(ctx, program.Job{Type: flow.ExecProcess, Program: &flow.Program{
		Command: `trap '' TERM; while :; do sleep 0.05; done`, GraceMS: 100}})
	require.Equal(t, "context deadline exceeded", res.Error)
	require.GreaterOrEqual(t, time.Since(begun), 300*time.Millisecond)
}

// This covers only the engine: neither the operator's additional variables nor those that describe
// the job in Troupe's names.
func TestAProgramSeesAStatedEnvironment(t *testing.T) {
	for _, name := range []string{"TROUPE_TOKEN", "TROUPE_STORE", "PGPASSWORD",
		"AWS_SECRET_ACCESS_KEY", "ORK_UPSTREAM_JSON", "ORK_API_URL"} {
		t.Setenv(name, "secret")
	}
	t.Setenv("LISTED", "yes")
	r := program.New(program.Options{Env: []string{"LISTED"}})
	var out listener
	res := r.Run(t.Context(), program.Job{Type: flow.ExecProcess, Stdout: &out, Input: json.RawMessage(`{"item":1}`),
		Program: &flow.Program{Args: []string{"env"}, Env: map[string]string{"OWN": "1", "task_name": "a-b"}},
		Facts: program.Facts{Run: "r", Flow: "f", Step: "s", Unit: 1, Units: 4, Many: true,
			Attempt: 2, Task: "t", Execution: "e", Retries: 3, TimeoutMS: 1500,
			Upstream: json.RawMessage(`{}`), Own: map[string]string{"TROUPE_JOB": "j"}}})
	require.Empty(t, res.Error)
	got := map[string]string{}
	for entry := range strings.Lines(out.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
		switch name {
		case "PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "TROUPE_FAMILY":
		default:
			if !strings.HasPrefix(name, "LC_") {
				got[name] = value
			}
		}
	}
	require.Equal(t, map[string]string{
		"ORK_INPUT_JSON": `{"item":1}`, "ORK_ITEM_JSON": "1", "ORK_ATTEMPT": "2",
		"ORK_TASK_ID": "t", "ORK_TASK_NAME": "s", "ORK_WORKFLOW_NAME": "f", "ORK_RUN_ID": "r",
		"ORK_PARALLEL_INDEX": "1", "ORK_PARALLEL_COUNT": "4", "EXECUTION_ID": "e", "attempt": "2",
		"task_index": "1", "task_name": "a-b", "workflow_name": "f",
		"run_id": "r", "max_retries": "3", "timeout_seconds": "1.5", "LISTED": "yes", "OWN": "1", "TROUPE_JOB": "j",
	}, got)
}
