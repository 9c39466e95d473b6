package tasks

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// manyArg selects tasks by their ids or by a filter.
type manyArg struct {
	tasksArg
	Filter []string `sep:"none" placeholder:"NAME=TEXT" help:"Select all tasks that match, instead of giving IDs: flow, version, state, label, node, q, id_prefix, since, created_from, created_to, ended_from, ended_to, duration_min, duration_max. Combine filters as in 'flow=order&label=customer:7'. Default state: those that the command applies to. Repeatable."`
	Yes    bool     `short:"y" help:"Skip the confirmation of --filter."`
}

// usesFilter reports whether tasks are selected by a filter.
func (c *manyArg) usesFilter() (bool, error) {
	switch {
	case len(c.Filter) > 0 && len(c.Tasks) > 0:
		return false, console.NewUsageError("give either task IDs or --filter")
	case len(c.Filter) == 0 && len(c.Tasks) == 0:
		return false, console.NewUsageError("give task IDs or --filter")
	}
	return len(c.Filter) > 0, nil
}

// parseFilter reads --filter.
func (c *manyArg) parseFilter() (*wire.TaskFilter, error) {
	var f wire.TaskFilter
	for _, text := range c.Filter {
		fields, err := url.ParseQuery(strings.TrimPrefix(text, "?"))
		if err != nil {
			return nil, console.NewUsageError("--filter %q: %v", text, err)
		}
		for name, values := range fields {
			for _, value := range values {
				if err := setFilter(&f, name, value); err != nil {
					return nil, err
				}
			}
		}
	}
	return &f, nil
}

// setFilter sets a parameter of a list of tasks.
func setFilter(f *wire.TaskFilter, name, value string) (err error) {
	lists := map[string]*[]string{"flow": &f.Flow, "state": &f.State, "label": &f.Label, "waiting_for": &f.WaitingFor}
	texts := map[string]*string{"id_prefix": &f.IDPrefix, "q": &f.Text, "error": &f.Failure, "node": &f.Node, "queued": &f.Queued}
	numbers := map[string]*int64{"duration_min": &f.DurationMin, "duration_max": &f.DurationMax}
	times := map[string]*wire.Time{"since": &f.CreatedFrom, "created_from": &f.CreatedFrom,
		"created_to": &f.CreatedTo, "ended_from": &f.EndedFrom, "ended_to": &f.EndedTo}
	switch {
	case lists[name] != nil:
		*lists[name] = append(*lists[name], value)
	case texts[name] != nil:
		*texts[name] = value
	case numbers[name] != nil:
		*numbers[name], err = strconv.ParseInt(value, 10, 64)
	case times[name] != nil:
		times[name].Time, err = console.ParseSince("--filter", value, time.Now())
	case name == "version":
		f.Version, err = strconv.Atoi(value)
	default:
		return unknownFilter(name)
	}
	if err != nil {
		return console.NewUsageError("--filter %s=%s: invalid value", name, value)
	}
	return nil
}

func unknownFilter(name string) error {
	near := flow.Nearest(name, []string{"flow", "version", "state", "label", "error", "waiting_for",
		"queued", "node", "q", "id_prefix", "since", "created_from", "created_to", "ended_from",
		"ended_to", "duration_min", "duration_max"})
	if near == "" {
		return console.NewUsageError("--filter: unknown filter %q", name)
	}
	return console.NewUsageError("--filter: unknown filter %q; did you mean %s?", name, near)
}

// runBulk sends a command to all tasks that --filter selects.
func (c *manyArg) runBulk(ctx context.Context, a *console.App, b wire.BulkRequest) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	if b.Filter, err = c.parseFilter(); err != nil {
		return err
	}
	if !c.Yes {
		if sure, err := confirmBulk(ctx, a, server, b); err != nil || !sure {
			return err
		}
	}
	all := wire.BulkResult{Action: b.Action, Exact: true, Failures: []wire.BulkFailure{}}
	for {
		done, err := server.Bulk(ctx, b)
		if err != nil {
			return fmt.Errorf("after %s: %w", bulkText(&all), err)
		}
		all.Tasks, all.Changed, all.Unchanged, all.Failed = all.Tasks+done.Tasks,
			all.Changed+done.Changed, all.Unchanged+done.Unchanged, all.Failed+done.Failed
		all.Failures, all.Started = append(all.Failures, done.Failures...), append(all.Started, done.Started...)
		if b.Cursor = done.Next; b.Cursor == "" {
			return c.showBulk(a, &all)
		}
	}
}

// bulkAnew starts a new task for each task that --filter selects. It selects only tasks created
// before now, because the new tasks might match as well.
func (c *manyArg) bulkAnew(ctx context.Context, a *console.App, b wire.BulkRequest, version string) (err error) {
	if b.Version, b.Latest, err = versionFlag(version); err != nil {
		return err
	}
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	info, err := server.Info(ctx)
	if err != nil {
		return err
	}
	c.Filter = append([]string{url.Values{"created_to": {info.StoreTime.UTC().Format(time.RFC3339Nano)}}.Encode()}, c.Filter...)
	return c.runBulk(ctx, a, b)
}

// confirmBulk prints how many tasks match, and asks the user for confirmation.
func confirmBulk(ctx context.Context, a *console.App, server *client.Client, b wire.BulkRequest) (bool, error) {
	b.DryRun = true
	there, err := server.Bulk(ctx, b)
	if err != nil {
		return false, err
	}
	many := console.FormatCount(there.Tasks, "task")
	switch {
	case !there.Exact && there.Tasks == 0: // not all tasks were searched
		many = "all matching tasks"
	case !there.Exact:
		many = "at least " + many
	case there.Tasks == 0:
		fmt.Fprintf(a.Stderr, "No tasks to %s.\n", b.Action)
		return false, nil
	}
	fmt.Fprintf(a.Stderr, "%s %s? Type yes to confirm: ", strings.ToUpper(b.Action[:1])+b.Action[1:], many)
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if said := strings.ToLower(strings.TrimSpace(answer)); said == "yes" || said == "y" {
		return true, nil
	}
	if err != nil { // an error means that no user is at a terminal
		fmt.Fprintln(a.Stderr)
		return false, console.NewUsageError("%s left unchanged: confirm the command, or set --yes", many)
	}
	return false, fmt.Errorf("%s left unchanged", many)
}

// shownRefusals is the number of refusals that are printed for people.
const shownRefusals = 20

func (c *manyArg) showBulk(a *console.App, done *wire.BulkResult) error {
	if c.IsJSON() {
		if err := console.PrintJSON(a.Stdout, done); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(a.Stdout, bulkText(done))
		if err := printRefusals(a, done.Failures); err != nil {
			return err
		}
	}
	if done.Failed > 0 {
		return console.ErrFailed
	}
	return nil
}

func printRefusals(a *console.App, refusals []wire.BulkFailure) error {
	if len(refusals) == 0 {
		return nil
	}
	var rows [][]string
	for _, r := range refusals[:min(len(refusals), shownRefusals)] {
		rows = append(rows, []string{r.Task, r.Message})
	}
	if err := console.PrintTable(a.Stdout, []string{"TASK", "REASON"}, rows); err != nil {
		return err
	}
	if more := len(refusals) - shownRefusals; more > 0 {
		fmt.Fprintf(a.Stdout, "… and %d more; --output json lists all\n", more)
	}
	return nil
}

// bulkDid holds the past participles of actions.
var bulkDid = map[string]string{"retry": "retried", "cancel": "canceled", "pause": "paused",
	"resume": "resumed", "rerun": "rerun", "fork": "forked"}

func bulkText(done *wire.BulkResult) string {
	text := fmt.Sprintf("%s: %d %s", console.FormatCount(done.Tasks, "task"), done.Changed, bulkDid[done.Action])
	if done.Unchanged > 0 {
		text += fmt.Sprintf(", %d unchanged", done.Unchanged)
	}
	if done.Failed > 0 {
		text += fmt.Sprintf(", %d rejected", done.Failed)
	}
	return text
}
