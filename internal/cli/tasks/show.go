package tasks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type taskShowCmd struct {
	console.RemoteFlags
	Task  string `arg:"" complete:"task" help:"Task ID or unique prefix."`
	Steps bool   `help:"Show all steps. Default: a large dag omits steps that have completed or not started."`
}

func (c *taskShowCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	id, err := console.FindTaskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	task, err := server.Task(ctx, id)
	if err != nil {
		return err
	}
	waiting, err := server.Waiting(ctx, id)
	if err != nil {
		return err
	}
	steps, err := c.fetchSteps(ctx, server, task)
	if err != nil {
		return err
	}
	tries, err := triesOf(ctx, server, id, steps)
	if err != nil {
		return err
	}
	signals, err := signalsOf(ctx, server, id)
	if err != nil {
		return err
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, struct {
			*wire.Task
			Waiting []wire.WaitReason `json:"waiting"`
			Steps   []wire.Step       `json:"step_list,omitempty"`
			Signals []wire.Event      `json:"signals,omitempty"`
		}{task, waiting.Waits, steps, signals})
	}
	if err := showTask(a, task, steps, tries, waiting.Waits); err != nil || len(signals) == 0 {
		return err
	}
	return showSignals(a, signals)
}

// signalsOf returns the signals among a task's first events. Later ones are in its history.
func signalsOf(ctx context.Context, server *client.Client, id string) ([]wire.Event, error) {
	events, err := server.Events(ctx, id, "", console.PageSize)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(events.Items, func(e wire.Event) bool { return e.Type != "signal_received" }), nil
}

func showSignals(a *console.App, signals []wire.Event) error {
	rows := make([][]string, len(signals))
	for i, e := range signals {
		rows[i] = []string{e.Key, cmp.Or(e.SentBy, "unknown"), console.FormatTime(e.At), console.TruncateText(string(e.Output), 60)}
	}
	fmt.Fprintln(a.Stdout)
	return console.PrintTable(a.Stdout, []string{"SIGNAL", "BY", "TIME", "VALUE"}, rows)
}

// fetchSteps returns the listed steps: all steps with --steps, or if a dag fits on a screen. Of a
// larger dag it lists started, failed and skipped steps, and of a failed graph the failed steps.
func (c *taskShowCmd) fetchSteps(ctx context.Context, server *client.Client, t *wire.Task) ([]wire.Step, error) {
	q, limit := client.StepQuery{}, 0
	if !c.Steps {
		switch n := t.Counts; {
		case n == nil && t.State != "failed":
			return nil, nil
		case n == nil:
			q.States, limit = []string{"failed"}, manySteps
		case n.Created+n.Started+n.Completed+n.Failed+n.Skipped > manySteps:
			q.States, limit = []string{"started", "failed", "skipped"}, manySteps
		}
	}
	return console.ReadAll(limit, func(p client.Paging) (*wire.Page[wire.Step], error) {
		q.Paging = p
		return server.Steps(ctx, t.ID, q)
	})
}

// manySteps is the number of steps that fit on a screen.
const manySteps = 50

func showTask(a *console.App, t *wire.Task, steps []wire.Step, tries map[stepVisit]lastAttempt, waits []wire.WaitReason) error {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
		labels = append(labels, name+"="+t.Labels[name])
	}
	var shared strings.Builder
	if err := console.PrintLine(&shared, t.Shared); err != nil {
		return err
	}
	err := console.PrintFields(a.Stdout, "Task", t.ID, "Flow", fmt.Sprintf("%s, version %d", t.Flow,
		t.Version), "State", console.FormatState(&t.TaskSummary),
		"Labels", strings.Join(labels, " "), "Node", t.Node, "Last action", t.LastAction, "Steps", stepsOf(t),
		"Forked from", t.Forked, "Started", console.FormatTime(t.CreatedAt), "Ended", console.FormatTime(t.EndedAt),
		"Duration", console.FormatElapsed(t.CreatedAt, t.EndedAt), "Error", t.Error,
		"Params", string(t.Params), "Shared", strings.TrimSpace(shared.String()), "Result", string(t.Result))
	if err != nil {
		return err
	}
	if err := showFollowed(a, t); err != nil {
		return err
	}
	if len(steps) > 0 {
		err = showSteps(a, steps, tries)
	} else {
		err = showActive(a, t.Active)
	}
	if err != nil {
		return err
	}
	for _, w := range waits {
		fmt.Fprintf(a.Stdout, "\nWaiting: %s", console.SanitizeText(waitLine(&w)))
	}
	if len(waits) > 0 {
		fmt.Fprintln(a.Stdout)
	}
	return nil
}

// showFollowed lists the errors after which the task continued.
func showFollowed(a *console.App, t *wire.Task) error {
	if len(t.IgnoredErrorDetails) == 0 {
		return nil
	}
	var rows [][]string
	for _, f := range t.IgnoredErrorDetails {
		rows = append(rows, []string{f.Node, fmt.Sprint(f.Count), console.FormatTime(f.At), console.TruncateText(f.Error, 80)})
	}
	fmt.Fprintln(a.Stdout)
	return console.PrintTable(a.Stdout, []string{"HANDLED FAILURE", "COUNT", "LAST", "ERROR"}, rows)
}

// stepsOf formats the numbers of a task's steps.
func stepsOf(t *wire.Task) string {
	n := t.Counts
	if n == nil {
		return fmt.Sprint(t.Steps)
	}
	return fmt.Sprintf("%d completed, %d started, %d failed, %d skipped, %d pending", n.Completed,
		n.Started, n.Failed, n.Skipped, n.Created)
}

func showSteps(a *console.App, steps []wire.Step, tries map[stepVisit]lastAttempt) error {
	var rows [][]string
	for _, s := range steps {
		units := ""
		if s.Units.Total > 1 || s.Kind == "fanout" && s.Visit > 0 {
			units = fmt.Sprintf("%d/%d", s.Units.Done, s.Units.Total) + failedUnits(s.Units.Failed)
		}
		last := tries[stepVisit{nodeID{s.Scope, s.Node}, s.Visit}]
		rows = append(rows, []string{nodeID{s.Scope, s.Node}.String(), s.Kind, s.State, units,
			last.attemptText(), last.by, console.FormatElapsed(s.EnteredAt, s.EndedAt),
			console.TruncateText(stepText(&s), 80)})
	}
	fmt.Fprintln(a.Stdout)
	return console.PrintTable(a.Stdout, []string{"STEP", "KIND", "STATE", "UNITS", "ATTEMPT", "EXECUTION", "DURATION", "REASON"}, rows)
}

// lastAttempt is the last attempt of a step. If a step has many units, the attempt with the highest
// number counts.
type lastAttempt struct {
	attempt int    // number of the attempt, from 1; 0 if there was none
	by      string // name of the carrier, if known: a worker, a process, an external job
}

func (t lastAttempt) attemptText() string {
	if t.attempt == 0 {
		return ""
	}
	return strconv.Itoa(t.attempt)
}

// triesOf returns the last attempts of steps, among the first attempts of the task. All attempts
// are in its history.
func triesOf(ctx context.Context, server *client.Client, id string, steps []wire.Step) (map[stepVisit]lastAttempt, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	runs, err := server.Runs(ctx, id, client.Paging{Limit: console.PageSize})
	if err != nil {
		return nil, err
	}
	last := map[stepVisit]lastAttempt{}
	for _, r := range runs.Items {
		at := stepVisit{nodeID{r.Scope, r.Node}, r.Visit}
		if r.Kind == "attempt" && r.Attempt >= last[at].attempt {
			last[at] = lastAttempt{r.Attempt, cmp.Or(r.Worker, r.URL)}
		}
	}
	return last, nil
}

// failedUnits returns a note about the number of failed units, or "" for 0.
func failedUnits(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d failed)", n)
}

// stepText returns the reason for a step's state.
func stepText(s *wire.Step) string {
	switch {
	case s.Error != "" || s.Reason != "":
		return strings.TrimPrefix(s.Reason+console.AddPrefix(": ", s.Error), ": ")
	case s.Held:
		return "blocked"
	case s.WaitingForCount > 0:
		text := "after " + strings.Join(s.WaitingFor, ", ")
		if more := s.WaitingForCount - len(s.WaitingFor); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return text
	case s.Wait != nil:
		return s.Wait.Text
	}
	return console.AddPrefix("action ", s.Action)
}

func showActive(a *console.App, steps []wire.Step) error {
	if len(steps) == 0 {
		return nil
	}
	var rows [][]string
	for _, s := range steps {
		row := []string{nodeID{s.Scope, s.Node}.String(), s.Kind, fmt.Sprint(s.Visit), "", "", "",
			"", console.FormatTime(s.EnteredAt), console.FormatTime(s.DueAt)}
		if u := s.Units; u.Total > 0 {
			row[3] = fmt.Sprintf("%d/%d", u.Done, u.Total)
			row[4], row[5], row[6] = fmt.Sprint(u.Failed), fmt.Sprint(u.InFlight), fmt.Sprint(u.Retrying)
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(a.Stdout)
	return console.PrintTable(a.Stdout, []string{"ACTIVE", "KIND", "VISIT", "DONE", "FAILED", "IN FLIGHT",
		"RETRYING", "STARTED", "DUE"}, rows)
}

func waitLine(w *wire.WaitReason) string {
	line := w.Text
	if w.Node != "" {
		line = nodeID{w.Scope, w.Node}.String() + ": " + line
	}
	if w.Workers != nil {
		line += inQueue(w)
	}
	return line + console.AddPrefix(", until ", console.FormatTime(w.Deadline))
}

// inQueue describes the position of a job in the queue for pollers.
func inQueue(w *wire.WaitReason) (text string) {
	if w.Ahead != nil {
		text = fmt.Sprintf(", %s ahead", console.FormatCount(*w.Ahead, "job"))
	}
	switch *w.Workers {
	case 0:
		return text + ", no worker can take it"
	case 1:
		return text + ", one worker can take it"
	}
	return fmt.Sprintf("%s, %d workers can take it", text, *w.Workers)
}
