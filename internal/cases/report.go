package cases

import (
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Where returns the position of a failure in its file.
func (r *Result) Where(f *Failure) string {
	return fmt.Sprintf("%s:%d:%d", r.File.Path, f.At.Line, f.At.Column)
}

// Text describes a failed case: the expectation, the necessary faults, and the story.
func (r *Result) Text(indent string) string {
	if r.Passed() {
		return ""
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, indent+format+"\n", args...) }
	for i := range r.Failures {
		f := &r.Failures[i]
		line("%s: %s", r.Where(f), f.Text)
		for _, more := range f.More {
			line("    %s", more)
		}
	}
	if schedule := r.Story.Schedule(); len(schedule) > 0 {
		line("%s", r.causeText())
		for row := range strings.Lines(Written(schedule)) {
			line("    %s", strings.TrimRight(row, "\n"))
		}
	}
	line("what happened:")
	for _, l := range r.Story.Tell() {
		line("    %12s  %s", rehearse.Span(l.Time), l.Text)
	}
	return b.String()
}

// causeText describes the origin of the faults.
func (r *Result) causeText() string {
	n := len(r.Story.Struck)
	if r.Seed == 0 {
		return "under this schedule:"
	}
	if n == r.Drawn {
		return fmt.Sprintf("seed %d, with (a schedule: put it into a file for --schedule):", r.Seed)
	}
	return fmt.Sprintf("seed %d, of whose %d faults this takes %d (a schedule: put it into a file for --schedule):", r.Seed, r.Drawn, n)
}

// Record is a result in JSON form.
type Record struct {
	File     string          `json:"file"`
	Flow     string          `json:"flow"`
	Case     string          `json:"case"`
	Line     int             `json:"line"`
	Passed   bool            `json:"passed"`
	Runs     int             `json:"runs"`
	TookMS   int64           `json:"took_ms"` // virtual time
	WallMS   float64         `json:"wall_ms"` // real time
	Seed     uint64          `json:"seed,omitempty"`
	Failures []RecordFailure `json:"failures,omitempty"`
	Schedule []RecordFault   `json:"schedule,omitempty"`
	Story    []RecordLine    `json:"story,omitempty"`
}

// RecordFailure is a failed expectation.
type RecordFailure struct {
	Line   int      `json:"line"`
	Column int      `json:"column"`
	Text   string   `json:"text"`
	More   []string `json:"more,omitempty"`
}

// RecordFault is a fault of a schedule.
type RecordFault struct {
	Kind rehearse.FaultKind `json:"kind"`
	At   string             `json:"at"`
	ByMS int64              `json:"by_ms,omitempty"`
}

// RecordLine is a line of a story.
type RecordLine struct {
	AtMS int64  `json:"at_ms"`
	Text string `json:"text"`
}

// Record returns the result in JSON form.
func (r *Result) Record() Record {
	d := Record{File: r.File.Path, Flow: r.File.Flow, Case: r.Case.Name, Line: r.Case.At.Line,
		Passed: r.Passed(), Runs: r.Runs, TookMS: r.Took.Milliseconds(),
		WallMS: float64(r.Wall.Microseconds()) / 1000, Seed: r.Seed}
	if r.Passed() {
		return d
	}
	for _, f := range r.Failures {
		d.Failures = append(d.Failures, RecordFailure{f.At.Line, f.At.Column, f.Text, f.More})
	}
	for _, f := range r.Story.Schedule() {
		d.Schedule = append(d.Schedule, RecordFault{f.Kind, f.At, f.By.Milliseconds()})
	}
	for _, l := range r.Story.Tell() {
		d.Story = append(d.Story, RecordLine{l.Time.Milliseconds(), l.Text})
	}
	return d
}

// CoverageRecord is the coverage of a flow in JSON form.
type CoverageRecord struct {
	Flow     string   `json:"flow"`
	Percent  float64  `json:"percent"`
	Nodes    int      `json:"nodes"`
	NodesHit int      `json:"nodes_hit"`
	Edges    int      `json:"edges"`
	EdgesHit int      `json:"edges_hit"`
	Missed   []string `json:"missed"`
}

// Covered returns the coverage of a flow in JSON form.
func Covered(f *File, c *rehearse.Coverage) CoverageRecord {
	d := CoverageRecord{Flow: f.Flow, Percent: c.Percent(), Missed: []string{}}
	d.Nodes, d.NodesHit, d.Edges, d.EdgesHit = c.Totals()
	for _, at := range c.Missed() {
		d.Missed = append(d.Missed, at.Text())
	}
	return d
}
