//go:build unix

package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/process"
)

// setupEnv holds the setup of a program that this test binary runs as.
const setupEnv = "TROUPE_DURABLE_SETUP"

func TestMain(m *testing.M) {
	if text := os.Getenv(setupEnv); text != "" {
		if err := runProgram(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(pgtest.Main(m))
}

// setup describes a program with an engine inside.
type setup struct {
	Store string
	Name  string   // of its member; "" if it is alone
	Dir   string   // of the ledger and of the marks
	Kills []string // points at which the first program that gets there kills itself
	Tasks []string // the program ends when they have ended

	Cancels bool // the first program cancels the tasks when the ledger has a line "wait"

	Server string // the program is a worker that is attached to this member; "" for none
}

// runProgram runs until its tasks have ended, and prints their results.
func runProgram(text string) error {
	var s setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	if s.Server != "" {
		return s.runWorker()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e, err := troupe.Open(ctx, troupe.Config{Store: s.Store, Name: s.Name, Lease: time.Second})
	if err != nil {
		return err
	}
	troupe.HandleFlow(e, "ten", s.takeTenSteps)
	troupe.HandleFlow(e, "trip", s.bookTrip)
	troupe.HandleFlow(e, "pack", s.packItems)
	troupe.HandleFlow(e, "rounds", s.payRounds)
	troupe.HandleFlow(e, "deliver", s.deliverTwice)
	troupe.Handle(e, "carry", s.carryParcel)
	troupe.HandleFlow(e, "tens", s.runTens)
	troupe.HandleFlow(e, "agent", s.callTools)
	if _, err := e.Member(ctx); err != nil {
		return err
	}
	cancels := s.Cancels && s.isFirst("cancel")
	for _, id := range s.Tasks {
		go allowAll(ctx, e, id) // until the program ends
		if cancels {
			s.awaitLine(ctx, "wait")
			if err := e.Cancel(ctx, id); err != nil {
				return err
			}
		}
		result, err := e.Wait(ctx, id)
		for err != nil && ctx.Err() == nil { // its member was killed or fenced
			result, err = e.Wait(ctx, id)
		}
		if err != nil {
			return err
		}
		fmt.Println(result.Status, string(result.Value), result.Error)
	}
	return e.Close()
}

// awaitLine returns when the ledger has a line that begins with a word.
func (s *setup) awaitLine(ctx context.Context, word string) {
	for ctx.Err() == nil {
		text, _ := os.ReadFile(filepath.Join(s.Dir, "ledger"))
		if strings.Contains("\n"+string(text), "\n"+word+" ") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

type input struct {
	Name string `json:"name"`
}

// takeTenSteps adds up the numbers of ten steps.
func (s *setup) takeTenSteps(f *durable.Flow, in input) (sum int, err error) {
	defer func() { s.addLine("end", in.Name, s.Name) }()
	for k := 1; k <= 10; k++ {
		if err := f.Stream("steps").Write(k); err != nil {
			return 0, err
		}
		n, err := durable.Do(f, fmt.Sprint("step", k), func(ctx context.Context) (int, error) {
			s.addLine(fmt.Sprint("step", k), in.Name, s.Name, troupe.JobFrom(ctx).Key())
			s.reachPoint(in.Name, "in", k)
			return k, nil
		})
		if err != nil {
			return 0, err
		}
		sum += n
		s.reachPoint(in.Name, "after", k)
	}
	return sum, nil
}

// bookTrip registers three undos, and waits for its cancel.
func (s *setup) bookTrip(f *durable.Flow, in input) (string, error) {
	for k := 1; k <= 3; k++ {
		f.Undo(fmt.Sprint("undo", k), func(ctx context.Context) error {
			s.awaitLine(ctx, "stopped") // a kill must not come before this line
			s.addLine(fmt.Sprint("undo", k), in.Name, s.Name, troupe.JobFrom(ctx).Key())
			s.reachPoint(in.Name, "undo", k)
			return nil
		})
		if err := f.Do(fmt.Sprint("step", k), func(context.Context) error { return nil }); err != nil {
			return "", err
		}
	}
	return "", f.Do("wait", func(ctx context.Context) error {
		s.addLine("wait", in.Name)
		<-ctx.Done()
		s.addLine("stopped", in.Name)
		return ctx.Err()
	})
}

// runTens runs a flow of ten steps twice.
func (s *setup) runTens(f *durable.Flow, in input) (sum int, err error) {
	for k := 1; k <= 2 && err == nil; k++ {
		var n int
		n, err = durable.Run[int](f, "ten", input{in.Name + strconv.Itoa(k)})
		sum += n
		s.reachPoint(in.Name, "after", k)
	}
	return sum, err
}

// parcel is the input of the service "carry".
type parcel struct {
	Task   string `json:"task"`
	Number int    `json:"number"`
}

// deliverTwice adds up the results of two called jobs.
func (s *setup) deliverTwice(f *durable.Flow, in input) (sum int, err error) {
	for k := 1; k <= 2 && err == nil; k++ {
		var n int
		n, err = durable.Call[int](f, "carry", parcel{in.Name, k}, durable.Over("local_func"))
		sum += n
		s.reachPoint(in.Name, "after", k)
	}
	return sum, err
}

func (s *setup) carryParcel(ctx context.Context, p parcel) (int, error) {
	s.addLine(fmt.Sprint("carry", p.Number), p.Task, troupe.JobFrom(ctx).Key())
	s.reachPoint(p.Task, "in", p.Number)
	return p.Number, nil
}

// addLine adds a line to the ledger. The line is in the file, whatever happens to the process.
func (s *setup) addLine(words ...string) {
	file, err := os.OpenFile(filepath.Join(s.Dir, "ledger"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.WriteString(strings.Join(words, " ") + "\n"); err != nil {
		panic(err)
	}
}

// reachPoint kills this process if it is the first one at a point at which it has to. At a point
// that ends with ":freeze" the first process waits until a byte arrives on its standard input.
func (s *setup) reachPoint(task, place string, k int) {
	point := fmt.Sprintf("%s-%s-%d", task, place, k)
	for _, p := range s.Kills {
		name, freezes := strings.CutSuffix(p, ":freeze")
		if name != point || !s.isFirst(point) {
			continue
		}
		if freezes {
			_, _ = os.Stdin.Read(make([]byte, 1))
			continue
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
}

func (s *setup) isFirst(point string) bool {
	file, err := os.OpenFile(filepath.Join(s.Dir, point), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = file.Close()
	}
	return err == nil
}

// patience is how long a test waits for a state on a busy machine.
const patience = 2 * time.Minute

// startProgram runs this binary as a program.
func startProgram(t *testing.T, s setup) (p *process.Process, input *os.File) {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), setupEnv+"="+string(text))
	in, input, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdin = in
	p, err = process.Start(s.Dir, "program"+s.Name, cmd)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	t.Cleanup(func() {
		p.Kill()
		_ = input.Close()
		if t.Failed() {
			t.Log(p.Said())
		}
	})
	return p, input
}

// readLedger returns the lines of the ledger as words.
func readLedger(t *testing.T, dir string) (lines [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ledger"))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// countLines returns the number of lines whose words begin as given.
func countLines(lines [][]string, words ...string) (n int) {
	for _, line := range lines {
		if len(line) >= len(words) && strings.Join(line[:len(words)], " ") == strings.Join(words, " ") {
			n++
		}
	}
	return n
}
