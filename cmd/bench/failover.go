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

// serverOf tells a hand where its member is.
const serverOf = "BENCH_SERVER"

// hand is an attached worker in a process of its own.
type hand struct {
	id  string
	cmd *exec.Cmd
}

// resumeGrace is how long a worker is waited for whose stream broke; 0 = the default, negative = not at all.
func (o options) resumeGrace() time.Duration {
	if o.workload == "failover" {
		return -1
	}
	return 0
}

// begun is that a hand has begun a job.
type begun struct {
	hand string
	at   time.Time
}

// failover kills the attached worker that carries out a job, so many times, and tells how long it takes until another one has it. Nobody
// waits for the dead one (a resume grace of 0).
func (b *bench) failover() error {
	if err := b.serve(b.ctx); err != nil {
		return err
	}
	if err := b.publish("hold", chainOf(1, "exec_type: remote, service: hold")); err != nil {
		return err
	}
	heard := make(chan begun, 100)
	hands := map[string]*hand{}
	defer func() {
		for _, h := range hands {
			_ = h.end()
		}
	}()
	var seen latencies
	for round := range b.o.n {
		for n := len(hands); n < 2; n++ {
			h, err := b.hire(fmt.Sprintf("hand-%d-%d", round, n), heard)
			if err != nil {
				return err
			}
			hands[h.id] = h
		}
		took, dead, err := b.killed(hands, heard)
		if err != nil {
			return err
		}
		seen.add(took)
		delete(hands, dead)
	}
	seen.fill(&b.result)
	b.result.Extra = map[string]float64{"worst_ms": milli(seen.list[len(seen.list)-1])}
	return nil
}

// killed has a job begun, kills whoever has it, and waits until somebody else does.
func (b *bench) killed(hands map[string]*hand, heard <-chan begun) (took time.Duration, dead string, err error) {
	id, err := b.start("hold", map[string]any{"p": newPayload("h")})
	if err != nil {
		return 0, "", err
	}
	first, err := next(b.ctx, heard)
	if err != nil {
		return 0, "", err
	}
	at := time.Now()
	if err := hands[first.hand].end(); err != nil {
		return 0, "", err
	}
	second, err := next(b.ctx, heard)
	if err != nil {
		return 0, "", err
	}
	return second.at.Sub(at), first.hand, b.request(http.MethodPost, b.url+"/v1/tasks/"+id+"/cancel", nil)
}

func next(ctx context.Context, heard <-chan begun) (begun, error) {
	select {
	case at := <-heard:
		return at, nil
	case <-time.After(30 * time.Second):
		return begun{}, errors.New("no worker began the job within 30 s")
	case <-ctx.Done():
		return begun{}, ctx.Err()
	}
}

// hire starts a hand and waits until its member knows it.
func (b *bench) hire(id string, heard chan<- begun) (*hand, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h := &hand{id: id, cmd: exec.Command(self, "-workload", "hand", "-worker", id)}
	h.cmd.Env, h.cmd.Stderr = append(os.Environ(), serverOf+"="+b.url), os.Stderr
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	b.background(func() error {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			heard <- begun{id, time.Now()}
		}
		return nil
	})
	return h, b.attached(id)
}

// end kills a hand; it gets no chance to say anything.
func (h *hand) end() error {
	err := h.cmd.Process.Kill()
	_ = h.cmd.Wait() // "signal: killed" is what was asked for
	return err
}

// attached waits until the member lists a worker.
func (b *bench) attached(id string) error {
	for range 1000 {
		list, err := b.workers()
		if err != nil || slices.Contains(list, id) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("worker %s did not attach", id)
}

// workers are the ids of those that the member lists.
func (b *bench) workers() (ids []string, err error) {
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

// carry is what a hand does: it tells that it has begun a job, and never ends one.
func carry(ctx context.Context, id string) error {
	w := worker.New(worker.Config{Server: os.Getenv(serverOf), ID: id, Attach: true, Concurrency: 100, Logger: slog.New(slog.DiscardHandler)})
	w.Handle("hold", func(ctx context.Context, job worker.Job) (any, error) {
		fmt.Println(job.ID)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return w.Run(ctx)
}
