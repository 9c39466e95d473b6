//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/worker"
)

// serverOf is the variable with the address of the member for an attached worker process.
const serverOf = "BENCH_SERVER"

// attachedWorker is an attached worker in a process of its own.
type attachedWorker struct {
	id  string
	cmd *exec.Cmd
}

// resumeGrace is how long a member waits for a worker whose stream broke; 0 means the default, and
// a negative value means no wait.
func (o benchOptions) resumeGrace() time.Duration {
	if o.workload == "failover" {
		return -1
	}
	return 0
}

// jobBegun reports that a worker has begun a job.
type jobBegun struct {
	hand string
	at   time.Time
}

// measureFailover repeatedly kills the attached worker that carries out a job. It measures the time
// until another worker has the job. The member does not wait for the dead worker to return.
func (b *benchRun) measureFailover() error {
	if err := b.serveAPI(b.ctx); err != nil {
		return err
	}
	if err := b.publishFlow("hold", chainOf(1, "exec_type: remote, service: hold")); err != nil {
		return err
	}
	heard := make(chan jobBegun, 100)
	hands := map[string]*attachedWorker{}
	defer func() {
		for _, h := range hands {
			_ = h.killWorker()
		}
	}()
	var seen latencySamples
	for round := range b.o.n {
		for n := len(hands); n < 2; n++ {
			h, err := b.startWorker(fmt.Sprintf("hand-%d-%d", round, n), heard)
			if err != nil {
				return err
			}
			hands[h.id] = h
		}
		took, dead, err := b.killHolder(hands, heard)
		if err != nil {
			return err
		}
		seen.addSample(took)
		delete(hands, dead)
	}
	seen.fillPercentiles(&b.result)
	b.result.Extra = map[string]float64{"worst_ms": toMillis(seen.list[len(seen.list)-1])}
	return nil
}

// killHolder starts a job, kills the worker that has the job, and waits until another worker has
// it.
func (b *benchRun) killHolder(hands map[string]*attachedWorker, heard <-chan jobBegun) (took time.Duration, dead string, err error) {
	id, err := b.startTask("hold", map[string]any{"p": newPayload("h")})
	if err != nil {
		return 0, "", err
	}
	first, err := nextBegun(b.ctx, heard)
	if err != nil {
		return 0, "", err
	}
	at := time.Now()
	if err := hands[first.hand].killWorker(); err != nil {
		return 0, "", err
	}
	second, err := nextBegun(b.ctx, heard)
	if err != nil {
		return 0, "", err
	}
	return second.at.Sub(at), first.hand, b.sendRequest(http.MethodPost, b.url+"/v1/tasks/"+id+"/cancel", nil)
}

func nextBegun(ctx context.Context, heard <-chan jobBegun) (jobBegun, error) {
	select {
	case at := <-heard:
		return at, nil
	case <-time.After(30 * time.Second):
		return jobBegun{}, errors.New("no worker began the job within 30 s")
	case <-ctx.Done():
		return jobBegun{}, ctx.Err()
	}
}

// startWorker starts a worker process and waits until its member lists it.
func (b *benchRun) startWorker(id string, heard chan<- jobBegun) (*attachedWorker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h := &attachedWorker{id: id, cmd: exec.Command(self, "-workload", "hand", "-worker", id)}
	h.cmd.Env, h.cmd.Stderr = append(os.Environ(), serverOf+"="+b.url), os.Stderr
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	b.runBackground(func() error {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			heard <- jobBegun{id, time.Now()}
		}
		return nil
	})
	return h, b.awaitAttached(id)
}

// killWorker kills a worker process without warning.
func (h *attachedWorker) killWorker() error {
	err := h.cmd.Process.Kill()
	_ = h.cmd.Wait() // "signal: killed" is expected
	return err
}

// awaitAttached waits until the member lists a worker.
func (b *benchRun) awaitAttached(id string) error {
	for range 1000 {
		list, err := b.listWorkers()
		if err != nil || slices.Contains(list, id) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("worker %s did not attach", id)
}

// listWorkers returns the ids of the workers that the member lists.
func (b *benchRun) listWorkers() (ids []string, err error) {
	resp, err := http.Get(b.url + "/v1/workers")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
	}
	err = json.NewDecoder(resp.Body).Decode(&list)
	for _, w := range list.Items {
		ids = append(ids, w.ID)
	}
	return ids, err
}

// runHolder runs the worker process. It prints the id of each job that begins, and never finishes a
// job.
func runHolder(ctx context.Context, id string) error {
	w := worker.New(worker.Config{Server: os.Getenv(serverOf), ID: id, Attach: true,
		Concurrency: 100, Logger: slog.New(slog.DiscardHandler)})
	w.Handle("hold", func(ctx context.Context, job worker.Job) (any, error) {
		fmt.Println(job.ID)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return w.Run(ctx)
}
