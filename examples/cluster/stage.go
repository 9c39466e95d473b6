//go:build unix

package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/internal/testing/ports"
	"github.com/troupe-engine/troupe/internal/testing/process"
)

//go:embed double.yaml
var definition []byte

// names are the names of the members. The second one is killed.
var names = []string{"ant", "bee", "cat"}

const victim = 1

// patience is the time limit for everything that should happen by itself.
const patience = 30 * time.Second

// demoCluster holds the members and the worker.
type demoCluster struct {
	store, dir string
	out        io.Writer
	members    []*process.Process
	servers    []string // addresses of the members
	worker     *process.Process
	client     *client.Client // knows all members
}

func (s *demoCluster) printLine(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// startAll starts the members and the worker.
func (s *demoCluster) startAll(ctx context.Context) (err error) {
	for _, name := range names {
		address, err := ports.FreeAddress()
		if err != nil {
			return err
		}
		member, err := s.startProcess(name, "member", name, address, s.store)
		if err != nil {
			return err
		}
		s.members, s.servers = append(s.members, member), append(s.servers, "http://"+address)
	}
	if s.client, err = s.clientOf(0); err != nil {
		return err
	}
	if err := s.awaitCondition(ctx, "the members have their shares", s.isBalanced); err != nil {
		return err
	}
	if _, err := s.client.Publish(ctx, "double", definition); err != nil {
		return err
	}
	if s.worker, err = s.startProcess("worker", "worker", strings.Join(s.servers, ","), s.notesFile()); err != nil {
		return err
	}
	return s.awaitCondition(ctx, "the worker is attached", func(ctx context.Context) bool {
		workers, err := s.client.Workers(ctx)
		return err == nil && strings.Contains(fmt.Sprint(workers), "painter")
	})
}

func (s *demoCluster) startProcess(name string, words ...string) (*process.Process, error) {
	cmd, err := roleCommand(words...)
	if err != nil {
		return nil, err
	}
	return process.Start(s.dir, name, cmd)
}

// notesFile returns the file in which the worker records its jobs.
func (s *demoCluster) notesFile() string { return filepath.Join(s.dir, "jobs") }

// clientOf returns a client that knows all members and prefers one of them.
func (s *demoCluster) clientOf(first int) (*client.Client, error) {
	first %= len(s.servers)
	return client.New(strings.Join(append(s.servers[first:len(s.servers):len(s.servers)], s.servers[:first]...), ","), client.Options{})
}

// isBalanced reports whether every member has its share of the shards.
func (s *demoCluster) isBalanced(ctx context.Context) bool {
	c, err := s.client.Members(ctx)
	if err != nil || len(c.Items) != len(names) {
		return false
	}
	for _, m := range c.Items {
		if m.Shards < 1024/len(names)-1 {
			return false
		}
	}
	return true
}

// awaitCondition waits until so returns true.
func (s *demoCluster) awaitCondition(ctx context.Context, what string, so func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !so(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// stopAll stops the processes, the worker first.
func (s *demoCluster) stopAll() {
	if s.client != nil {
		s.client.Close()
	}
	if s.worker != nil {
		_ = s.worker.Stop(patience)
		s.worker.Kill()
	}
	for _, m := range s.members {
		if !m.Gone() {
			_ = m.Stop(patience)
			m.Kill()
		}
	}
}

// countExecutions returns how often the worker got each job.
func (s *demoCluster) countExecutions() (map[string]int, error) {
	text, err := os.ReadFile(s.notesFile())
	if err != nil {
		return nil, err
	}
	times := map[string]int{}
	for _, job := range strings.Fields(string(text)) {
		times[job]++
	}
	return times, nil
}
