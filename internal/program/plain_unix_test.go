//go:build unix

package program_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

// Each line runs without a shell, and with an appended part that only a shell understands.
func TestALineMeansTheSameWithAndWithoutAShell(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write(t, filepath.Join(dir, "bin/tell"), "#!/bin/sh\nenv | grep -E '^(PWD|A|PATH)=' | sort\necho $0 $# \"$@\"", 0o755)
	write(t, filepath.Join(dir, "bin/unsaid"), "echo no first line: $# \"$@\"", 0o755)
	write(t, filepath.Join(dir, "bin/kept"), "#!/bin/sh\necho never", 0o644)
	write(t, filepath.Join(dir, "late/kept"), "#!/bin/sh\necho the other one", 0o755)
	write(t, filepath.Join(dir, "echo"), "#!/bin/sh\necho not that one", 0o755)
	require.NoError(t, os.Symlink(filepath.Join(dir, "bin/tell"), filepath.Join(dir, "bin/told")))
	search := filepath.Join(dir, "bin") + ":" + filepath.Join(dir, "late") + ":" + os.Getenv("PATH")
	for _, line := range []string{
		"tell a b-c d=e f:g,h @i %j +k ./l", "  tell \t x ", "told 1", "./bin/tell 1", "bin/tell 1",
		dir + "/bin/tell 1", "unsaid a b", "./bin/unsaid 1",
		"kept it", "./bin/kept it", "echo -e it", "echo it", "A=2 tell it", "exit 3", "true it",
		"pwd -P", "cat ./bin/tell", "ls no-such-file", "sh -c exit",
		"tell -n", "-c exit", "cd bin", "test 1 -eq 2", "umask 077", "sort --reverse bin/tell",
		"tell é", "tell a\\ b", "tell ~ *", "no-such-program 1", "bin 1",
	} {
		t.Run(line, func(t *testing.T) {
			got := map[string]program.Result{}
			logs := map[string]string{}
			for name, end := range map[string]string{"as it is": "", "with a shell": ";"} {
				log := &listener{}
				job := program.Job{Program: &flow.Program{Command: line + end,
					Env: map[string]string{"PATH": search}}, Stdout: log, Stderr: log}
				res := runIn(t, dir, job)
				res.PID = 0
				got[name], logs[name] = res, log.String()
			}
			require.Equal(t, got["with a shell"], got["as it is"])
			require.Equal(t, logs["with a shell"], logs["as it is"])
		})
	}
}
