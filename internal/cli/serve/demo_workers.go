package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// Ids of the demo's workers.
const (
	demoPush = "demo-push"
	demoPull = "demo-pull"
)

// workerProcesses holds the workers that this command starts, each in its own process.
type workerProcesses struct {
	once sync.Once
	all  []workerProcess
}

type workerProcess struct {
	id    string
	cmd   *exec.Cmd
	stdin io.Closer // closing it ends the process
}

// startDemoWorkers starts a push and a pull worker of the demo services.
func startDemoWorkers(url string, stderr io.Writer) (*workerProcesses, error) {
	me, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program for the workers: %w", err)
	}
	p := &workerProcesses{}
	for _, mode := range []string{"push", "pull"} {
		id := map[string]string{"push": demoPush, "pull": demoPull}[mode]
		cmd := exec.Command(me, "worker", "--mode", mode, "--id", id, "--server", url, "--url",
			"http://127.0.0.1:0", "--log-level", "error", "--with-stdin")
		cmd.Env, cmd.Stderr = withoutSettings(os.Environ()), stderr
		stdin, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			p.stopAll()
			return nil, fmt.Errorf("starting the %s worker: %w", mode, err)
		}
		p.all = append(p.all, workerProcess{id, cmd, stdin})
	}
	return p, nil
}

// withoutSettings removes the variables that a worker would read as flags.
func withoutSettings(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		return strings.HasPrefix(v, "TROUPE_") || strings.HasPrefix(v, "WORKER_") || strings.HasPrefix(v, "REGISTRY_")
	})
}

// waitOnline waits until the member lists all workers as online.
func (p *workerProcesses) waitOnline(ctx context.Context, server *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		known, err := server.Workers(ctx)
		if err != nil {
			return err
		}
		missing := 0
		for _, own := range p.all {
			if !slices.ContainsFunc(known, func(w wire.Worker) bool { return w.ID == own.id && w.State == "online" }) {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return errors.New("the workers did not start in time")
		}
	}
}

// stopAll stops all processes and waits for their ends. Further calls do nothing.
func (p *workerProcesses) stopAll() {
	p.once.Do(func() {
		for _, w := range p.all {
			_ = w.stdin.Close() // fails if the process has ended already
		}
		for _, w := range p.all {
			kill := time.AfterFunc(5*time.Second, func() { _ = w.cmd.Process.Kill() })
			_ = w.cmd.Wait() // the exit status does not matter
			kill.Stop()
		}
	})
}
