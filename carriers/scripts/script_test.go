package scripts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/carriers/scripts"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// parents are what this program runs instead of its tests when it was started by one of them: the
// variable with that name selects it.
var parents = map[string]func(){}

func TestMain(m *testing.M) {
	for name, run := range parents {
		if os.Getenv(name) != "" {
			run()
			return
		}
	}
	goleak.VerifyTestMain(m)
}

// patience is how long tests wait for events that are immediate on an idle machine. Scripts that
// must be ended would run longer.
const patience = time.Minute

// shelf keeps logs in memory.
type shelf struct {
	persistence.Logs
	mu   sync.Mutex
	kept map[string]string
}

func (l *shelf) AppendLog(_ context.Context, chunks []persistence.LogChunk, _ int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range chunks {
		for _, line := range c.Lines {
			l.kept[c.Task+" "+c.Job] += line.Text
			l.kept[string(line.Stream)] += line.Text
		}
	}
	return nil
}

func (l *shelf) read(j flow.Job) string { return l.get(j.Task + " " + j.ID()) }

// get returns the output of an attempt, or of one stream.
func (l *shelf) get(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept[key]
}

// logged returns a book that writes to a shelf.
func logged(t *testing.T) (*logs.Book, *shelf) {
	l := &shelf{kept: map[string]string{}}
	book := logs.New(logs.Options{Store: l})
	t.Cleanup(func() { require.NoError(t, book.Close(context.Background())) })
	return book, l
}

// kept waits until all output is stored: a script waits for a second at most.
func kept(t *testing.T, book *logs.Book) { require.NoError(t, book.Close(t.Context())) }

func job(s flow.Script) flow.Job {
	return flow.Job{Task: "t1", Address: flow.Address{Node: "n", Visit: 1, Attempt: 1},
		Exec:  &flow.Exec{Type: flow.ExecScript, Script: &s},
		Input: json.RawMessage(`{"v":41}`), Params: json.RawMessage(`{"p":"q"}`)}
}

func carryJob(t *testing.T, o scripts.Options, j flow.Job) flow.Report {
	o.Allow = true
	return scripts.New(o).Carry(t.Context(), j)
}

func TestFunctionOutputs(t *testing.T) {
	for name, tt := range map[string]struct {
		script flow.Script
		want   string
	}{
		"text keeps its trailing newline": {flow.Script{Cmd: "echo", Args: []string{"a", "b"}}, `"a b\n"`},
		"stdout and stderr are one": {flow.Script{Code: "echo out; echo err >&2; echo out"},
			`"out\nerr\nout\n"`},
		"stderr is none of it, if so said": {flow.Script{Code: "echo out; echo err >&2; echo out",
			StderrMode: "log"}, `"out\nout\n"`},
		"json beside words on stderr": {flow.Script{Code: "echo warning >&2; echo 5",
			StderrMode: "log", OutputMode: "json"}, `5`},
		"json is parsed when asked for": {flow.Script{Code: `echo '{"b":1,"a":12345678901234567890}'`,
			OutputMode: "json"}, `{"b":1,"a":12345678901234567890}`},
		"json that is none stays a text": {flow.Script{Code: `echo '{"b":'`,
			OutputMode: "json"}, `"{\"b\":\n"`},
		"json is not parsed unless asked for": {flow.Script{Code: `echo 5`}, `"5\n"`},
		"nothing printed is an empty text":    {flow.Script{Cmd: "true", OutputMode: "json"}, `""`},
		"input and params come in by stdin": {flow.Script{Cmd: "cat", StdinMode: "json",
			OutputMode: "json"}, `{"input":{"v":41},"params":{"p":"q"},"key":"t1.1.0.Cm4"}`},
		"without a mode there is no stdin":      {flow.Script{Cmd: "cat"}, `""`},
		"a script need not read its stdin":      {flow.Script{Cmd: "echo", Args: []string{"x"}, StdinMode: "json"}, `"x\n"`},
		"code gets the arguments":               {flow.Script{Code: `echo "$1-$2"`, Args: []string{"x", "y"}}, `"x-y\n"`},
		"code may be python":                    {flow.Script{Code: `print(6*7)`, Language: "python", OutputMode: "json"}, `42`},
		"code may be for a program by its name": {flow.Script{Code: `print 6*7`, Language: "perl", OutputMode: "json"}, `42`},
		"cmd is the program for code":           {flow.Script{Code: `echo $0`, Cmd: "cat"}, `"echo $0"`},
		"env is added": {flow.Script{Code: `echo $A$B; test -n "$PATH"`,
			Env: map[string]string{"A": "1", "B": "2"}}, `"12\n"`},
		"env wins over the member's": {flow.Script{Code: `echo $HOME`,
			Env: map[string]string{"HOME": "/nowhere"}}, `"/nowhere\n"`},
		"it knows which job it has": {flow.Script{Code: `echo $TROUPE_TASK ` +
			`$TROUPE_NODE $TROUPE_UNIT/$TROUPE_UNITS $TROUPE_ATTEMPT $TROUPE_KEY $TROUPE_JOB`},
			`"t1 n 0/1 1 t1.1.0.Cm4 t1.1.0.1.Cm4\n"`},
		"bytes that are no text are replaced": {flow.Script{Code: `printf 'a\xffb'`}, `"a\ufffdb"`},
	} {
		t.Run(name, func(t *testing.T) {
			rep := carryJob(t, scripts.Options{}, job(tt.script))
			require.Empty(t, rep.Error)
			require.Equal(t, tt.want, string(rep.Output))
			require.Equal(t, "local-script:"+tt.script.Cmd, rep.Worker)
			require.Equal(t, "local", rep.URL)
		})
	}
}

func TestFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		script flow.Script
		want   string
	}{
		"the exit status and the last line are told": {flow.Script{Code: "echo first; echo last; exit 3"}, "failed: exit status 3: last"},
		"the last line of stderr, if told apart": {flow.Script{Code: "echo why >&2; echo " +
			">&2; echo out; exit 3", StderrMode: "log"}, "failed: exit status 3: why"},
		"else of stdout": {flow.Script{Code: "echo out; exit 3",
			StderrMode: "log"}, "failed: exit status 3: out"},
		"silence has no last line": {flow.Script{Cmd: "false"}, "failed: exit status 1"},
		"a signal is told":         {flow.Script{Code: "kill -9 $$"}, "failed: signal: killed"},
		"an unknown program": {flow.Script{Cmd: "no-such-program"},
			`failed: exec: "no-such-program": executable file not found in $PATH`},
		"a missing file": {flow.Script{Cmd: "./nope"}, "failed: fork/exec ./nope: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, flow.Report{Error: tt.want}, carryJob(t, scripts.Options{}, job(tt.script)))
		})
	}
}

func TestADistantTimeoutDoesNotFireAtOnce(t *testing.T) {
	r := carryJob(t, scripts.Options{}, job(flow.Script{Cmd: "true", TimeoutMS: 10_000_000_000_000}))
	require.Empty(t, r.Error)
}

func TestNothingRunsUnlessAllowed(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	rep := scripts.New(scripts.Options{}).Carry(t.Context(), job(flow.Script{Cmd: "touch", Args: []string{mark}}))
	require.True(t, rep.Fatal)
	require.Contains(t, rep.Error, "failed: scripts are not allowed")
	require.Contains(t, rep.Error, "--allow-scripts")
	require.NoFileExists(t, mark)
}

func TestScriptsStayInTheirDirectory(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "in"), 0o755))
	require.NoError(t, os.Symlink(other, filepath.Join(dir, "link")))
	for name, tt := range map[string]struct {
		workDir, want string // "" if refused
	}{
		"none is the directory itself": {"", dir},
		"a relative one is inside":     {"in", filepath.Join(dir, "in")},
		"an absolute one may be":       {filepath.Join(dir, "in"), filepath.Join(dir, "in")},
		"up and out is refused":        {"in/../..", ""},
		"another one is refused":       {other, ""},
		"a link does not lead outside": {"link", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rep := carryJob(t, scripts.Options{Dir: dir}, job(flow.Script{Cmd: "pwd", WorkDir: tt.workDir}))
			if tt.want == "" {
				require.True(t, rep.Fatal)
				require.Regexp(t, "^failed: work_dir .* is outside", rep.Error)
				return
			}
			require.Equal(t, fmt.Sprintf("%q", tt.want+"\n"), string(rep.Output))
		})
	}
}

func TestTriesAreLoggedTogether(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	book, l := logged(t)
	j := job(flow.Script{Code: `echo x >> $COUNT; n=$(wc -l < $COUNT); echo try $n; test $n -ge 3`,
		Env: map[string]string{"COUNT": count}})
	j.Exec.MaxAttempts = 5
	rep := carryJob(t, scripts.Options{Logs: book}, j)
	require.Empty(t, rep.Error)
	require.Equal(t, `"try 3\n"`, string(rep.Output))
	require.True(t, rep.Log)
	kept(t, book)
	require.Equal(t, "try 1\ntry 2\ntry 3\n", l.read(j))
}

func TestAnErrorContainsTheLastLineOfItsOwnTry(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	j := job(flow.Script{Code: `test -e $MARK || { touch $MARK; seq 10000; exit 1; }; echo ` +
		`again; exit 2`, Env: map[string]string{"MARK": mark}})
	j.Exec.MaxAttempts = 2
	require.Equal(t, "failed: exit status 2: again", carryJob(t, scripts.Options{MaxOutput: 100}, j).Error)
}

func TestFailedScriptsAreLoggedToo(t *testing.T) {
	book, l := logged(t)
	rep := carryJob(t, scripts.Options{Logs: book}, job(flow.Script{Code: "echo why; exit 1"}))
	require.Equal(t, flow.Report{Error: "failed: exit status 1: why", Log: true}, rep)
	kept(t, book)
	require.Equal(t, "why\n", l.read(job(flow.Script{})))
}

func TestALogSeparatesStderrIfConfigured(t *testing.T) {
	book, l := logged(t)
	rep := carryJob(t, scripts.Options{Logs: book, MaxOutput: 100},
		job(flow.Script{Code: "echo out; seq 10000 >&2; echo out", StderrMode: "log"}))
	require.Equal(t, flow.Report{Output: json.RawMessage(`"out\nout\n"`), Worker: "local-script:", URL: "local", Log: true}, rep)
	kept(t, book)
	require.Equal(t, "out\nout\n", l.get("stdout"))
	require.Equal(t, 10000, strings.Count(l.get("stderr"), "\n"))
}

func TestAScriptThatPrintsNothingHasNoLog(t *testing.T) {
	book, l := logged(t)
	require.False(t, carryJob(t, scripts.Options{Logs: book}, job(flow.Script{Cmd: "true"})).Log)
	kept(t, book)
	require.Empty(t, l.read(job(flow.Script{})))
}

func TestOutputBeyondTheLimitFailsTheAttempt(t *testing.T) {
	for name, tt := range map[string]struct{ code, mode string }{
		"plain text":            {`yes | head -c 5000000`, ""},
		"text full of controls": {`head -c 9000 /dev/zero`, ""},
		"json too long to read": {`echo '['; yes '1,' | head -c 5000000; echo '1]'`, "json"},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(flow.Script{Code: tt.code, OutputMode: tt.mode})
			j.Exec.MaxAttempts = 3
			rep := carryJob(t, scripts.Options{MaxOutput: 10_000}, j)
			require.Equal(t, flow.Report{Fatal: true,
				Error: "failed: the output has more than 10000 bytes, the limit of a value " +
					"(--max-value); keep large data elsewhere and pass a reference"}, rep)
		})
	}
}

func TestOutputUpToTheLimitIsKept(t *testing.T) {
	rep := carryJob(t, scripts.Options{MaxOutput: 3_000_000},
		job(flow.Script{Code: `printf '"'; yes | head -c 2999998 | tr '\n' y; printf '"'`,
			OutputMode: "json"}))
	require.Empty(t, rep.Error)
	require.Len(t, rep.Output, 3_000_000)
}

func TestALogContainsOutputBeyondTheLimit(t *testing.T) {
	book, l := logged(t)
	j := job(flow.Script{Code: `seq 10000; exit 3`})
	rep := carryJob(t, scripts.Options{Logs: book, MaxOutput: 1000}, j)
	require.Equal(t, flow.Report{Error: "failed: exit status 3: 10000", Log: true}, rep)
	kept(t, book)
	require.Equal(t, 10000, strings.Count(l.read(j), "\n"))
}

func TestTheLogOfAScriptIsReadWhileItRuns(t *testing.T) {
	book, l := logged(t)
	ctx, cancel := context.WithCancel(t.Context())
	j, ended := job(flow.Script{Code: `echo half way; exec sleep 1000`, TimeoutMS: 1_000_000}), make(chan flow.Report)
	go func() { ended <- scripts.New(scripts.Options{Allow: true, Logs: book}).Carry(ctx, j) }()
	require.Eventually(t, func() bool { return l.read(j) == "half way\n" }, patience, time.Millisecond)
	cancel()
	require.True(t, (<-ended).Log)
}

func TestScriptsSeeOnlyTheDefinedEnvironment(t *testing.T) {
	for _, name := range []string{"TROUPE_TOKEN", "TROUPE_STORE", "PGPASSWORD", "SCHEDULER_DB",
		"OTEL_EXPORTER_OTLP_HEADERS", "API_KEY", "LISTED", "OVERLAID"} {
		t.Setenv(name, "secret")
	}
	t.Setenv("LC_TIME", "C")
	s := flow.Script{Cmd: "env", Env: map[string]string{"OVERLAID": "by the flow", "OWN": "value"}}
	rep := carryJob(t, scripts.Options{Env: []string{"LISTED", "OVERLAID"}}, job(s))
	require.Empty(t, rep.Error)
	var text string
	require.NoError(t, json.Unmarshal(rep.Output, &text))
	for _, seen := range []string{"LC_TIME=C\n", "LISTED=secret\n", "OVERLAID=by the flow\n",
		"OWN=value\n", "PATH=" + os.Getenv("PATH") + "\n"} {
		require.Contains(t, text, seen)
	}
	require.Equal(t, 1, strings.Count(text, "secret"))
}

func TestTheInputMayBeLargerThanAPipe(t *testing.T) {
	j := job(flow.Script{Code: `wc -c`, StdinMode: "json", OutputMode: "json"})
	j.Input = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	require.Equal(t, strconv.Itoa(1<<20+2+len(`{"input":,"params":{"p":"q"},"key":"t1.1.0.Cm4"}`)),
		string(carryJob(t, scripts.Options{}, j).Output))

	j.Exec.Script.Code = `head -c 3`
	require.Equal(t, `"{\"i"`, string(carryJob(t, scripts.Options{}, j).Output))
}

func readPid(t *testing.T, file string) int {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

// requireGone waits until a process has ended, whichever process reaps it.
func requireGone(t *testing.T, pid int) {
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ")
	}, patience, 5*time.Millisecond)
}

func TestATimeoutEndsTheWholeGroup(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	s := flow.Script{TimeoutMS: 300, Code: `sleep 100 & echo begun; echo $! > $PIDFILE.new; mv $PIDFILE.new $PIDFILE; wait`,
		Env: map[string]string{"PIDFILE": pid}}
	book, _ := logged(t)
	var rep flow.Report
	for begun := false; !begun; s.TimeoutMS *= 4 { // until there was enough time to start
		rep = carryJob(t, scripts.Options{Logs: book}, job(s))
		require.Contains(t, rep.Error, fmt.Sprintf("failed: timeout after %s", time.Duration(s.TimeoutMS)*time.Millisecond))
		_, err := os.Stat(pid)
		begun = err == nil
	}
	require.Regexp(t, ": begun$", rep.Error)
	rep.Error = ""
	require.Equal(t, flow.Report{TimedOut: true, Log: true}, rep)
	requireGone(t, readPid(t, pid))
}

func TestAWithdrawnJobEndsItsScript(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "pid")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	pid := make(chan int, 1)
	go func() {
		defer cancel()
		pid <- readPid(t, fifo)
	}()
	j := job(flow.Script{Code: `trap '' TERM; echo $$ > $PIDFILE; while :; do sleep 1; done`,
		Env: map[string]string{"PIDFILE": fifo}})
	j.Exec.MaxAttempts = 3
	rep := scripts.New(scripts.Options{Allow: true}).Carry(ctx, j)
	require.Equal(t, flow.Report{Error: "failed: context canceled"}, rep)
	requireGone(t, <-pid)
}

func TestBackgroundProcessesEndWithTheirScript(t *testing.T) {
	pid, begun := filepath.Join(t.TempDir(), "pid"), time.Now()
	rep := carryJob(t, scripts.Options{}, job(flow.Script{
		Code: `sleep 100 & echo $! > $PIDFILE; echo done`, Env: map[string]string{"PIDFILE": pid}}))
	require.Equal(t, `"done\n"`, string(rep.Output))
	require.Less(t, time.Since(begun), patience)
	requireGone(t, readPid(t, pid))
}

func TestADaemonDoesNotDelayItsScriptAndEndsWithIt(t *testing.T) {
	pid, begun := filepath.Join(t.TempDir(), "pid"), time.Now()
	rep := carryJob(t, scripts.Options{}, job(flow.Script{
		Code: `setsid sh -c 'echo $$ > $PIDFILE.new; mv $PIDFILE.new $PIDFILE; exec sleep 100' ` +
			`& while ! test -e $PIDFILE; do :; done; echo done`,
		Env: map[string]string{"PIDFILE": pid}}))
	require.Equal(t, `"done\n"`, string(rep.Output))
	require.Less(t, time.Since(begun), patience)
	requireGone(t, readPid(t, pid))
}

func TestAWithdrawnJobEndsProcessesOutsideItsSession(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "pid")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	pid := make(chan int, 1)
	go func() {
		defer cancel()
		pid <- readPid(t, fifo)
	}()
	rep := scripts.New(scripts.Options{Allow: true}).Carry(ctx, job(flow.Script{
		Code: `while grep -q 'file locks *unlimited' /proc/$$/limits; do :; done
			(setsid env -i sh -c 'echo $$ > $0; exec sleep 1000' $PIDFILE >/dev/null 2>&1 &); sleep 1000`, Env: map[string]string{"PIDFILE": fifo}, TimeoutMS: 1_000_000}))
	require.Equal(t, flow.Report{Error: "failed: context canceled"}, rep)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", <-pid))
	require.True(t, err != nil || strings.Contains(string(stat), ") Z "), "it has ended before the job is reported")
}

func TestCodeLeavesNoFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	carryJob(t, scripts.Options{}, job(flow.Script{Code: "true"}))
	carryJob(t, scripts.Options{}, job(flow.Script{Code: "x", Cmd: "no-such-program"}))
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}
