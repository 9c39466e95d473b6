package errands

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// jobExecution is a worker at a job, in milliseconds; over is 0 when the worker ended before.
type jobExecution struct {
	worker, job      string
	begunAt, endedAt int64
}

// What lines of a diary say of a job.
const (
	noteBegins = "begins"
	noteEnds   = "ends"
)

// writeDiaryLine writes a line by one write, so that those of several workers stay whole.
func writeDiaryLine(diary io.Writer, worker, job, what string) {
	fmt.Fprintf(diary, "%s %s %s %d\n", worker, job, what, time.Now().UnixMilli())
}

// ReadDiary tells which workers began each job, in order. No file means that nobody has begun
// anything yet.
func ReadDiary(path string) (map[string][]string, error) {
	stints, err := readExecutions(path)
	if err != nil {
		return nil, err
	}
	began := map[string][]string{}
	for _, s := range stints {
		began[s.job] = append(began[s.job], s.worker)
	}
	return began, nil
}

// readExecutions reads a diary, in order of the beginnings.
func readExecutions(path string) ([]*jobExecution, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var all []*jobExecution
	open := map[[2]string]*jobExecution{}
	for line := range strings.Lines(string(text)) {
		var worker, job, what string
		var at int64
		if _, err := fmt.Sscanf(line, "%s %s %s %d\n", &worker, &job, &what, &at); err != nil {
			return nil, fmt.Errorf("line %q of the diary: %w", line, err)
		}
		who := [2]string{worker, job}
		switch s := open[who]; {
		case what == noteBegins:
			open[who] = &jobExecution{worker: worker, job: job, begunAt: at}
			all = append(all, open[who])
		case what == noteEnds && s != nil:
			s.endedAt = at
		default:
			return nil, fmt.Errorf("line %q of the diary, which nothing went before", line)
		}
	}
	return all, nil
}
