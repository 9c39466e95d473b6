package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/testing/built"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// binary is the path of the command, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	for _, v := range os.Environ() { // settings of the user's environment
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "TROUPE_") || strings.HasPrefix(name, "SCHEDULER_") {
			os.Unsetenv(name)
		}
	}
	dir, err := os.MkdirTemp("", "troupe-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "troupe")
	if err := built.Program(binary, "../../cmd/troupe"); err != nil {
		panic(err)
	}
	return pgtest.Main(m)
}

// result is the exit code and the output of a command.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the program without additions.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runCommandLine(ctx, console.Program{Name: "troupe"}, args, stdin, stdout, stderr)
}

// call runs a command in this process.
func call(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, strings.NewReader(""), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// background runs a command until the test ends. It returns the first line that the command prints,
// and a buffer with the rest. The command must exit successfully.
func background(t *testing.T, args ...string) (first string, rest *output) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	stdin, typed := io.Pipe()
	from, to := io.Pipe()
	var stderr output
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, args, stdin, to, &stderr)
		to.Close()
	}()
	lines := bufio.NewReader(from)
	first, err := lines.ReadString('\n')
	if err != nil {
		stop()
		require.FailNow(t, "it printed nothing", "exit code %d, stderr: %s", <-code, stderr.String())
	}
	rest = &output{}
	copied := make(chan struct{})
	go func() { _, _ = io.Copy(rest, lines); close(copied) }()
	t.Cleanup(func() {
		stop()
		typed.Close()
		<-copied
		require.Equal(t, exitOK, <-code, stderr.String())
	})
	return strings.TrimSpace(first), rest
}

// output is a buffer that another goroutine writes.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func (o *output) waitFor(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(o.String(), text) }, time.Minute, 10*time.Millisecond, "no %q", text)
}

// logged waits until the log of a task contains a text the given number of times, and returns it. A
// slow store gets the end of a log later.
func logged(t *testing.T, times int, text string, args ...string) (log string) {
	t.Helper()
	require.Eventually(t, func() bool {
		log = call(t, append([]string{"task", "logs"}, args...)...).stdout
		return strings.Count(log, text) >= times
	}, time.Minute, 20*time.Millisecond, "the log has no %q", text)
	return log
}

// startServe runs a member on a new store and returns its address.
func startServe(t *testing.T, args ...string) (url string) {
	t.Helper()
	store := "sqlite:" + filepath.Join(t.TempDir(), "t.db")
	line, _ := background(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--store", store, "--log-level", "error"}, args...)...)
	return urlIn(t, line)
}

// urlIn finds the address in a line such as "Troupe serves http://… from …".
func urlIn(t *testing.T, line string) string {
	t.Helper()
	for _, word := range strings.Fields(line) {
		if strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://") {
			return word
		}
	}
	require.FailNow(t, "no address", line)
	return ""
}

// write makes a file and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func parse[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}
