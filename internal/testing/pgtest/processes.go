//go:build unix

package pgtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processStat holds fields of /proc/<pid>/stat. The start time distinguishes a process from a later
// process with the same id.
type processStat struct {
	pid, parent int
	state       string
	own, reaped time.Duration // CPU time of the process, and of the children it has reaped
	start       string
}

// tick is the unit of CPU times in /proc. It is constant for user space.
const tick = time.Second / 100

// readProcess reads /proc/<pid>/stat; see proc(5) for the columns.
func readProcess(pid int) (processStat, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, err
	}
	// The name in parentheses may contain any characters, so parsing starts behind it.
	f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(f) < 20 {
		return processStat{}, fmt.Errorf("pgtest: /proc/%d/stat has %d columns", pid, len(f))
	}
	p := processStat{pid: pid, state: f[0], start: f[19]}
	var ticks [4]int
	for i, column := range []string{f[1], f[11], f[12], f[13], f[14]} {
		n, err := strconv.Atoi(column)
		if err != nil {
			return processStat{}, fmt.Errorf("pgtest: /proc/%d/stat: %w", pid, err)
		}
		if i == 0 {
			p.parent = n
		} else {
			ticks[i-1] = n
		}
	}
	p.own = time.Duration(ticks[0]+ticks[1]) * tick
	p.reaped = time.Duration(ticks[2]+ticks[3]) * tick
	return p, nil
}

// childrenOf searches all processes, because PostgreSQL gives each child a session of its own, so
// there is no process group. Without /proc it returns none.
func childrenOf(pid int) []processStat {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var children []processStat
	for _, stat := range stats {
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			continue
		}
		// otherwise it has ended meanwhile
		if p, err := readProcess(id); err == nil && p.parent == pid {
			children = append(children, p)
		}
	}
	return children
}

// hasEnded reports whether the process has ended, even if it was not reaped.
func (p processStat) hasEnded() bool {
	now, err := readProcess(p.pid)
	return err != nil || now.start != p.start || now.state == "Z"
}
