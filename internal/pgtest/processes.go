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

// processStat is one line of /proc/<pid>/stat. The start tells a process from a later one that got
// the same id.
type processStat struct {
	pid, parent int
	state       string
	own, reaped time.Duration // CPU time of itself, and of children it has waited for
	start       string
}

// tick is the unit of CPU times in /proc, fixed for user space whatever the kernel's own is.
const tick = time.Second / 100

// readProcess reads /proc/<pid>/stat; see proc(5) for the columns.
func readProcess(pid int) (processStat, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, err
	}
	// The name in parentheses may hold anything, so count from behind it.
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

// childrenOf looks through all processes, because PostgreSQL gives each of its children a session
// of its own: there is no process group to ask. Where there is no /proc it finds none.
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
		if p, err := readProcess(id); err == nil && p.parent == pid { // else it ended meanwhile
			children = append(children, p)
		}
	}
	return children
}

// hasEnded is true when p has ended, even if nobody has waited for it.
func (p processStat) hasEnded() bool {
	now, err := readProcess(p.pid)
	return err != nil || now.start != p.start || now.state == "Z"
}
