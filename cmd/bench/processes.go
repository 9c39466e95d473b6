//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// memberProcesses are members in processes of their own, which share a database.
type memberProcesses struct {
	dsn     string
	members []*memberProcess
}

// memberProcess is a member process. It reads commands as lines on its input and answers with JSON
// lines. It exits when its input ends.
type memberProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// processReply is the answer of a member process.
type processReply struct {
	Error string `json:"error,omitempty"`
}

// newProcesses starts members on a new database of the server, and waits until each member has its
// share of the shards.
func (b *benchRun) newProcesses(members int) (*memberProcesses, error) {
	dsn, err := b.newDatabase()
	if err != nil {
		return nil, err
	}
	c := &memberProcesses{dsn: dsn}
	for range members {
		m, err := startProcess(dsn)
		if err != nil {
			return nil, errors.Join(err, c.stopAll())
		}
		c.members = append(c.members, m)
	}
	if err := c.awaitShared(b.ctx); err != nil {
		return nil, errors.Join(err, c.stopAll())
	}
	return c, nil
}

// newDatabase creates an empty database on the temporary server.
func (b *benchRun) newDatabase() (string, error) {
	if b.server == nil {
		return "", errors.New("members in processes of their own are measured with -store postgres")
	}
	conn, err := pgx.Connect(b.ctx, b.dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(b.ctx)
	b.databases++
	name := "members_" + strconv.Itoa(b.databases)
	_, err = conn.Exec(b.ctx, "CREATE DATABASE "+name)
	return b.server.DSN(name), err
}

func startProcess(dsn string) (*memberProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &memberProcess{cmd: exec.Command(self, "-workload", "member", "-store", dsn)}
	m.cmd.Stderr = os.Stderr
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.out = bufio.NewScanner(out)
	return m, m.cmd.Start()
}

// sendCommand sends a command to a process and waits for its answer.
func (m *memberProcess) sendCommand(command string) error {
	if _, err := fmt.Fprintln(m.in, command); err != nil {
		return fmt.Errorf("a member has ended: %w", err)
	}
	if !m.out.Scan() {
		return fmt.Errorf("a member has ended: %w", errors.Join(io.EOF, m.out.Err()))
	}
	var r processReply
	if err := json.Unmarshal(m.out.Bytes(), &r); err != nil {
		return fmt.Errorf("%.80s: %w", m.out.Text(), err)
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}

// sendAll sends a command to all members concurrently.
func (c *memberProcesses) sendAll(command string) error {
	errs := make([]error, len(c.members))
	var work sync.WaitGroup
	for i, m := range c.members {
		work.Go(func() { errs[i] = m.sendCommand(command) })
	}
	work.Wait()
	return errors.Join(errs...)
}

// awaitShared waits until every shard has an owner and all members own about the same number.
func (c *memberProcesses) awaitShared(ctx context.Context) error {
	if err := c.sendAll("begin"); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, c.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for range 600 {
		var owned []int
		err := conn.QueryRow(ctx, "SELECT array(SELECT count(*) FROM troupe.shards GROUP BY owner)").Scan(&owned)
		if err != nil {
			return err
		}
		if len(owned) == len(c.members) && slices.Max(owned)-slices.Min(owned) <= len(owned) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the members did not come to share the tasks")
}

// stopAll stops the members and ignores their final output.
func (c *memberProcesses) stopAll() error {
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.in.Close())
	}
	for _, m := range c.members {
		for m.out.Scan() {
		}
		errs = append(errs, m.cmd.Wait())
	}
	return errors.Join(errs...)
}

// serveCommands handles commands until the input ends.
func (b *benchRun) serveCommands() error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r processReply
		if err := b.runCommand(strings.Fields(lines.Text())); err != nil {
			r.Error = err.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// runCommand runs a command: begin, publish, or run with the numbers of tasks and of concurrent
// tasks.
func (b *benchRun) runCommand(command []string) error {
	switch {
	case len(command) == 1 && command[0] == "begin":
		_, err := b.engine.Member(b.ctx)
		return err
	case len(command) == 1 && command[0] == "publish":
		return b.publishFlow("chain", chainOf(b.o.steps, b.execSpec()))
	case len(command) == 3 && command[0] == "run":
		n, err := strconv.Atoi(command[1])
		if err != nil {
			return err
		}
		concurrency, err := strconv.Atoi(command[2])
		if err != nil {
			return err
		}
		return b.forEach(n, concurrency, func(i int) error {
			return b.runToCompletion("chain", map[string]any{"p": newPayload(fmt.Sprint("c", i))})
		})
	}
	return fmt.Errorf("no command: %q", command)
}
