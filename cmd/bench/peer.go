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
	"text/tabwriter"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// runPeer runs a benchmark of another engine on a temporary server with the same settings. The
// command finds the server in DATABASE_URL and its pid in BENCH_PG_PID, and prints its own JSON
// line.
func runPeer(ctx context.Context, command []string) error {
	if len(command) == 0 {
		return errors.New("-workload peer needs the peer's command: bench -workload peer -- COMMAND ARGS…")
	}
	server, err := pgtest.StartServer(ctx, "")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+server.DSN("postgres"), "BENCH_PG_PID="+strconv.Itoa(server.Pid()))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return errors.Join(cmd.Run(), server.Stop())
}

// resultLine holds the fields common to the lines of this program and of other engines.
type resultLine struct {
	Peer      string  `json:"peer"`
	Workload  string  `json:"workload"`
	Store     string  `json:"store"`
	Backend   string  `json:"backend"`
	Worker    string  `json:"worker"`
	StepsPerS float64 `json:"steps_per_s"`
	P50MS     float64 `json:"p50_ms"`
	P99MS     float64 `json:"p99_ms"`
	RSS       float64 `json:"peak_rss_mb"`
}

func (l resultLine) groupKey() string {
	if l.Peer != "" {
		return l.Peer + " " + l.Backend + " " + l.Workload
	}
	return "troupe " + l.Store + " " + l.Workload + " " + l.Worker
}

// printTable prints the medians of JSON lines, in order of first appearance.
func printTable(in io.Reader, out io.Writer) error {
	runs := map[string][]resultLine{}
	var order []string
	for s := bufio.NewScanner(in); s.Scan(); {
		var l resultLine
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return fmt.Errorf("%.80s: %w", s.Text(), err)
		}
		if runs[l.groupKey()] == nil {
			order = append(order, l.groupKey())
		}
		runs[l.groupKey()] = append(runs[l.groupKey()], l)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "run\truns\tsteps/s\tlowest\thighest\tp50 ms\tp99 ms\tpeak RSS MB\t")
	for _, key := range order {
		list := runs[key]
		steps := sortedColumn(list, func(l resultLine) float64 { return l.StepsPerS })
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t%.0f\t\n", key, len(list), medianSorted(steps), steps[0], steps[len(steps)-1],
			medianSorted(sortedColumn(list, func(l resultLine) float64 { return l.P50MS })),
			medianSorted(sortedColumn(list, func(l resultLine) float64 { return l.P99MS })),
			medianSorted(sortedColumn(list, func(l resultLine) float64 { return l.RSS })))
	}
	return w.Flush()
}

func sortedColumn(list []resultLine, of func(resultLine) float64) []float64 {
	values := make([]float64, len(list))
	for i, l := range list {
		values[i] = of(l)
	}
	slices.Sort(values)
	return values
}

func medianSorted(sorted []float64) float64 {
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
