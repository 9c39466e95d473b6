package errands

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// jobExecution is one execution of a job by a worker, in milliseconds; endedAt is 0 if the worker
// ended first.
type jobExecution struct {
	worker, job      string
	begunAt, endedAt int64
}

// Events in a diary.
const (
	noteBegins = "begins"
	noteEnds   = "ends"
)

// writeDiaryLine writes a line with a single write, so that lines of several workers stay whole.
func writeDiaryLine(diary io.Writer, worker, job, what string) {
	fmt.Fprintf(diary, "%s %s %s %d\n", worker, job, what, time.Now().UnixMilli())
}

// ReadDiary returns the workers that began each job, in order. A missing file means that no job has
// begun yet.
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

// readExecutions reads a diary, ordered by start.
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
