//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
)

// profileLine is a row of the table of Ork's profiles.
type profileLine struct {
	workload, what string
	published      string // figure published by Ork
	demanded       string
	met            func(benchResult) bool
}

// profileLines lists the profiles of Ork's performance test with Ork's published figures and the
// targets for Troupe. Ork publishes 155 tasks per second, a 99th percentile below 700 ms and 10 MB,
// without the load. The 737 tasks per second of the heavy profile are from a commit message.
var profileLines = []profileLine{
	{"ork-a", "A: 100 runs of 5, `sleep 0.1`", "155/s, p99 below 700 ms", "155/s, p99 below 700 ms, 70 % of a bare loop",
		func(r benchResult) bool { return r.StepsPerS >= 155 && r.P99MS < 700 && r.Extra["of_bare"] >= 0.7 }},
	{"ork-b", "B: 1,000 runs of 10, `sleep 0.05`", "737/s", "737/s, or 70 % of a bare loop",
		func(r benchResult) bool { return r.StepsPerS >= 737 || r.Extra["of_bare"] >= 0.7 }},
	{"ork-c", "C: 100 runs of 5, `sleep 5`", "10 MB", "all 500 at the same time",
		func(r benchResult) bool { return int(r.Extra["at_once"]) == r.N*5 }},
	{"ork-d", "D: 100 runs of 5, `true`", "", "70 % of a bare loop",
		func(r benchResult) bool { return r.Extra["of_bare"] >= 0.7 }},
}

// profilesTable prints the results of Ork's profiles, and of Python, as tables. It returns an error
// if a target is missed.
func profilesTable(in io.Reader, out io.Writer) error {
	lines, err := readResults(in)
	if err != nil {
		return err
	}
	missed := false
	fmt.Fprint(out, "| profile | tasks/s | bare loop | share | p50 / p99 / max | memory idle / "+
		"peak | Ork tells | demanded |\n|---|--:|--:|--:|--:|--:|---|---|\n")
	for _, p := range profileLines {
		of := lines[p.workload]
		if len(of) == 0 {
			continue
		}
		r := of[0]
		verdict := p.demanded
		if !p.met(r) {
			missed, verdict = true, p.demanded+" (**missed**)"
		}
		fmt.Fprintf(out, "| %s | %.0f | %.0f | %.0f %% | %.0f / %.0f / %.0f ms | %.0f / %.0f MB "+
			"| %s | %s |\n", p.what, r.StepsPerS, r.Extra["bare_per_s"], 100*r.Extra["of_bare"],
			r.P50MS, r.P99MS, r.Extra["max_ms"], r.Extra["rss_idle_mb"], r.PeakRSSMB, p.published, verdict)
	}
	for _, r := range lines["ork-d"] {
		fmt.Fprintf(out, "\nThe flow of D with functions of Go: %.0f tasks/s. Programs that do "+
			"nothing are %.0f %% of that.\n", r.Extra["func_per_s"], 100*r.Extra["of_func"])
	}
	for _, r := range lines["python"] {
		missed = missed || r.Extra["of_cold"] < 5
		fmt.Fprintf(out, "\nFunctions of Python: %.0f tasks/s with `warm: 2`, %.0f without; "+
			"%.1f times as many (at least 5 are demanded).\n", r.StepsPerS, r.Extra["cold_per_s"],
			r.Extra["of_cold"])
	}
	if missed {
		return errors.New("a figure is not what it is to be")
	}
	return nil
}
