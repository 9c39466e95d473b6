package errands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/worker"
)

// Worker configures this program when it is started again as a worker.
type Worker struct {
	ID, Server string
	Push       bool
	Attach     bool
	URL        string // address of a push worker
	Services   []string
	Hang       bool   // whether the worker never finishes a job
	Diary      string // file that records each execution
	Outside    string // address of the external system, for the services begin and begin-later
}

// workerEnv is the variable that holds a Worker as JSON.
const workerEnv = "TROUPE_ERRANDS_WORKER"

// Command returns a command that starts this program again as the worker. Its main function has to
// call BeWorker first.
func (w Worker) Command() (*exec.Cmd, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	return cmd, nil
}

// BeWorker runs the worker and exits in a process started as a worker; otherwise it returns.
func BeWorker() {
	if spec := os.Getenv(workerEnv); spec != "" {
		os.Exit(runWorker(spec))
	}
}

// serviceAnswers are the services. Their answers depend only on the input and the attempt number,
// so it does not matter which worker carries out a job, when, or how often.
var serviceAnswers = map[string]func(n float64, attempt int) (any, error){
	"double":      doubleInput,
	"slow":        doubleInput,
	"later":       doubleInput,
	"tardy":       doubleInput,
	"stay":        doubleInput,
	"hold":        doubleInput,
	"increase":    func(n float64, _ int) (any, error) { return n + 17, nil },
	"flaky":       failFirstAttempts,
	"later-flaky": failFirstAttempts,
	"odd": func(n float64, _ int) (any, error) {
		if int(n)%2 != 0 {
			return nil, errors.New("odd")
		}
		return n, nil
	},
	"choose": func(n float64, _ int) (any, error) {
		return map[string]string{"action": []string{"left", "right"}[int(n)%2]}, nil
	},
}

func doubleInput(n float64, _ int) (any, error) { return 2 * n, nil }

func failFirstAttempts(n float64, attempt int) (any, error) {
	if attempt <= int(n)%4 {
		return nil, fmt.Errorf("not at attempt %d", attempt)
	}
	return n + 1, nil
}

// serviceTime returns how long a service takes: long enough to be running when something is killed.
func serviceTime(service string, n float64) time.Duration {
	switch service {
	case "slow":
		return 350 * time.Millisecond
	case "tardy":
		return 700 * time.Millisecond
	}
	return time.Duration(40+int(math.Abs(n))%120) * time.Millisecond
}

// PushServices, AttachedServices and PullServices are the services offered by the three kinds of
// workers. AttachedServices has some of PushServices and one more.
var (
	PushServices     = []string{"begin", "choose", "double", "flaky", "increase", "odd", "slow"}
	AttachedServices = []string{"begin", "double", "slow", "stay"}
	PullServices     = []string{"begin-later", "later", "later-flaky", "tardy"}
)

// runWorker is the main function of a worker process.
func runWorker(text string) int {
	var spec Worker
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	diary, err := os.OpenFile(spec.Diary, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer diary.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w := worker.New(worker.Config{Server: spec.Server, ID: spec.ID, Push: spec.Push, Attach: spec.Attach, URL: spec.URL,
		Heartbeat: 300 * time.Millisecond, Wait: 5 * time.Second, Concurrency: 32,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	for _, service := range spec.Services {
		w.Handle(service, func(ctx context.Context, job worker.Job) (any, error) {
			writeDiaryLine(diary, spec.ID, job.ID, noteBegins)
			defer writeDiaryLine(diary, spec.ID, job.ID, noteEnds)
			if spec.Hang {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if strings.HasPrefix(service, "begin") {
				return beginOutside(ctx, spec.Outside, job)
			}
			return serveJob(ctx, service, job)
		})
	}
	if err := w.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveJob(ctx context.Context, service string, job worker.Job) (any, error) {
	_, at, err := flow.ParseJobID(job.ID)
	if err != nil {
		return nil, worker.Fatal(err)
	}
	var n float64
	if err := json.Unmarshal(job.Input, &n); err != nil {
		return nil, worker.Fatal(fmt.Errorf("input: %w", err))
	}
	select {
	case <-time.After(serviceTime(service, n)):
		return serviceAnswers[service](n, at.Attempt)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
