package errands

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// stint is a worker at a job, in milliseconds; over is 0 when the worker ended before.
type stint struct {
	worker, job string
	begun, over int64
}

// What lines of a diary say of a job.
const (
	begins = "begins"
	ends   = "ends"
)

// note writes a line by one write, so that those of several workers stay whole.
func note(diary io.Writer, worker, job, what string) {
	fmt.Fprintf(diary, "%s %s %s %d\n", worker, job, what, time.Now().UnixMilli())
}

// ReadDiary tells which workers began each job, in order. No file means that nobody has begun anything yet.
func ReadDiary(path string) (map[string][]string, error) {
	stints, err := readStints(path)
	if err != nil {
		return nil, err
	}
	began := map[string][]string{}
	for _, s := range stints {
		began[s.job] = append(began[s.job], s.worker)
	}
	return began, nil
}

// readStints reads a diary, in order of the beginnings.
func readStints(path string) ([]*stint, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var all []*stint
	open := map[[2]string]*stint{}
	for line := range strings.Lines(string(text)) {
		var worker, job, what string
		var at int64
		if _, err := fmt.Sscanf(line, "%s %s %s %d\n", &worker, &job, &what, &at); err != nil {
			return nil, fmt.Errorf("line %q of the diary: %w", line, err)
		}
		who := [2]string{worker, job}
		switch s := open[who]; {
		case what == begins:
			open[who] = &stint{worker: worker, job: job, begun: at}
			all = append(all, open[who])
		case what == ends && s != nil:
			s.over = at
		default:
			return nil, fmt.Errorf("line %q of the diary, which nothing went before", line)
		}
	}
	return all, nil
}
