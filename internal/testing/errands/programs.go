package errands

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// programs are the scripts that members start for flows. Each attempt records its start and end in
// programsLog, in its working folder.
//
//go:embed programs
var programs embed.FS

const programsLog = "programs.log"

// putPrograms writes the scripts to the members' folder.
func putPrograms(dir string) error {
	files, err := fs.Sub(programs, "programs")
	if err != nil {
		return err
	}
	return os.CopyFS(dir, files)
}

// hasPython reports whether Python functions can run here.
func hasPython() bool {
	_, err := exec.LookPath("python3")
	return err == nil
}

// countNotes returns how often each attempt recorded its start and end in the programsLog of a
// folder, or in the log of containers.
func countNotes(dir string) (began, ended map[string]int, err error) {
	began, ended = map[string]int{}, map[string]int{}
	text, err := os.ReadFile(filepath.Join(dir, programsLog))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	boxed, err := os.ReadFile(filepath.Join(dir, containersFolder, programsLog))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	text = append(text, boxed...)
	for line := range strings.Lines(string(text)) {
		switch job, what, _ := strings.Cut(strings.TrimSpace(line), " "); what {
		case noteBegins:
			began[job]++
		case noteEnds:
			ended[job]++
		default:
			return nil, nil, fmt.Errorf("line %q of %s", line, programsLog)
		}
	}
	return began, ended, nil
}

// checkPrograms compares the records of programs with the journals. No attempt began twice or
// before its start was stored, and each successful attempt has ended. Attempts lost with a member
// were retried exactly as their retries permit. The result is the number of lost attempts.
func (f Figures) checkPrograms(t *testing.T, dir string) (lost int) {
	t.Helper()
	began, ended, err := countNotes(dir)
	require.NoError(t, err)
	for job, times := range began {
		a := f.attempts[job]
		assert.NotNil(t, a, "a program of %s has begun, which no journal has", job)
		assert.Equal(t, 1, times, "programs that have begun for %s", job)
	}
	for job, a := range f.attempts {
		if a.tries == 0 {
			continue
		}
		if a.ok {
			assert.Equal(t, 1, ended[job], "times that the program of %s, which went well, has ended", job)
		}
		task, at, err := flow.ParseJobID(job)
		require.NoError(t, err)
		assert.LessOrEqual(t, at.Attempt, a.tries, "tries of %s", job)
		if a.err == flow.ProgramLost {
			lost++
			at.Attempt++
			assert.True(t, at.Attempt > a.tries || f.attempts[flow.JobID(task, at)] != nil,
				"%s was lost with its member, and is not tried again", job)
		}
	}
	return lost
}
