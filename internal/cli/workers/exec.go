package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/child"
	"github.com/troupe-engine/troupe/worker"
)

// maxPrinted is the greatest size of a command's output; a larger result is rejected.
const maxPrinted = 8 << 20

// commandHandler carries out a job by a shell command. Its environment is env and the variables of
// the job. All processes started by the command end with the job. When the job is canceled, the
// command may end by itself within grace.
func commandHandler(command string, env []string, grace time.Duration) worker.Handler {
	return func(ctx context.Context, job worker.Job) (any, error) {
		stdin, err := json.Marshal(wire.ExecRequest{Key: job.Key(), Input: job.Input, Params: job.Params})
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		var stdout, stderr limitedBuffer
		family := child.New()
		cmd := shellCommand(command)
		cmd.Env = append(commandEnv(env, job), family.Variable())
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, io.MultiWriter(&stderr, worker.OpenOutput(job.Log, "stderr"))
		cmd.WaitDelay = time.Second // for children that hold the pipes open
		if err := runCommand(ctx, cmd, family, grace); err != nil {
			return nil, commandError(err, stderr.kept.String())
		}
		return commandResult(&stdout)
	}
}

func runCommand(ctx context.Context, cmd *exec.Cmd, family child.Family, grace time.Duration) error {
	defer family.Leave()
	if err := cmd.Start(); err != nil {
		return err
	}
	family.Adopt(cmd.Process.Pid)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() { // ends with the command
		defer close(watched)
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		terminateGroup(cmd)
		select {
		case <-ended:
		case <-time.After(grace):
		}
		killGroup(cmd)
		family.Kill()
	}()
	err := cmd.Wait()
	close(ended)
	<-watched
	return err
}

// commandError returns an error with the command's last output and its exit status.
func commandError(err error, stderr string) error {
	how := err.Error()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		how = fmt.Sprintf("exit code %d", exit.ExitCode())
	}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Errorf("%s (%s)", last, how)
	}
	return fmt.Errorf("the command failed without output on stderr: %s", how)
}

func commandResult(stdout *limitedBuffer) (any, error) {
	if stdout.cut {
		return nil, worker.Fatal(fmt.Errorf("the command printed more than %d bytes", maxPrinted))
	}
	out := bytes.TrimSpace(stdout.kept.Bytes())
	if len(out) == 0 {
		return nil, nil
	}
	if !json.Valid(out) {
		return nil, worker.Fatal(fmt.Errorf("the command printed invalid JSON: %.80q", out))
	}
	return json.RawMessage(out), nil
}

// limitedBuffer stores the beginning of the written bytes, so that a command cannot fill the
// memory. It embeds no bytes.Buffer, because io.Copy would use ReadFrom instead of Write.
type limitedBuffer struct {
	kept bytes.Buffer
	cut  bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	fits := min(len(p), maxPrinted-b.kept.Len())
	b.cut = b.cut || fits < len(p)
	b.kept.Write(p[:fits])
	return len(p), nil
}
