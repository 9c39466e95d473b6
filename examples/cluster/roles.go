//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/worker"
)

// roleEnv is the variable that selects the role of this program when it starts itself.
const roleEnv = "TROUPE_EXAMPLE_ROLE"

// roleCommand returns a command that starts this program in a role.
func roleCommand(words ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleEnv+"="+strings.Join(words, " "))
	return cmd, nil
}

// runRole runs a role until it is asked to end, and returns the exit status.
func runRole(role string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	words := strings.Fields(role)
	var err error
	switch words[0] {
	case "member":
		err = beMember(ctx, words[1], words[2], words[3])
	case "worker":
		err = beWorker(ctx, words[1], words[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// beMember runs a member of a cluster. It needs only a name, an address, and the store shared with
// the others.
func beMember(ctx context.Context, name, address, store string) error {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store, Name: name, Listen: address,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	return errors.Join(engine.Serve(ctx, nil), engine.Close())
}

// beWorker doubles numbers, and records its jobs in a file.
func beWorker(ctx context.Context, servers, notes string) error {
	file, err := os.OpenFile(notes, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	w := worker.New(worker.Config{ID: "painter", Server: servers, Attach: true})
	w.Handle("double", func(_ context.Context, job worker.Job) (any, error) {
		var n int
		if err := json.Unmarshal(job.Input, &n); err != nil {
			return nil, worker.Fatal(err)
		}
		if _, err := fmt.Fprintln(file, job.ID); err != nil {
			return nil, err
		}
		time.Sleep(10 * time.Millisecond) // the work
		return 2 * n, nil
	})
	return w.Run(ctx)
}
