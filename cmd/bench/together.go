//go:build unix

package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// measureTogether measures chain on -members members, each a process with -concurrency callers of
// its own, and the cost of all members.
func (b *benchRun) measureTogether() error {
	c, err := b.newProcesses(b.o.members)
	if err != nil {
		return err
	}
	err = b.chainTogether(c)
	if left := c.stopAll(); err == nil {
		err = left
	}
	return err
}

func (b *benchRun) chainTogether(c *memberProcesses) error {
	if err := c.members[0].sendCommand("publish"); err != nil {
		return err
	}
	if err := c.sendAll(fmt.Sprintf("run %d %d", max(b.o.n/10, 1), b.o.concurrency)); err != nil {
		return err
	}
	b.dsn, b.processes = c.dsn, c // count only the member processes
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	if err := c.sendAll(fmt.Sprintf("run %d %d", b.o.n, b.o.concurrency)); err != nil {
		return err
	}
	b.result.Extra = map[string]float64{"members": float64(b.o.members)}
	return m.finishMeter(b.o.members*b.o.n, b.o.members*b.o.n*b.o.steps)
}

// totalCPU returns the CPU time of all members. If a member has ended, the run itself fails.
func (c *memberProcesses) totalCPU() (total time.Duration) {
	for _, m := range c.members {
		d, _ := pgtest.CPUOf(m.cmd.Process.Pid)
		total += d
	}
	return total
}

// rssMB returns the resident memory of all members.
func (c *memberProcesses) rssMB() (total float64) {
	for _, m := range c.members {
		total += rssOf(strconv.Itoa(m.cmd.Process.Pid))
	}
	return total
}
