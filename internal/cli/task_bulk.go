package cli

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
)

// manyArg selects tasks by their ids or by a filter.
type manyArg struct {
	tasksArg
	Filter []string `sep:"none" placeholder:"NAME=TEXT" help:"All tasks that a list with these filters has, in place of ids: flow, version, state, label, node, q, id_prefix, since, created_from, created_to, ended_from, ended_to, duration_min, duration_max; or several of them, as in the address of a list of tasks: 'flow=order&label=customer:7'. Without state those that the command is for. May be repeated."`
	Yes    bool     `short:"y" help:"With --filter: do not ask."`
}

// usesFilter reports whether tasks are selected by a filter.
func (c *manyArg) usesFilter() (bool, error) {
	switch {
	case len(c.Filter) > 0 && len(c.Tasks) > 0:
		return false, newUsageError("tasks are named by their ids or picked by --filter: give one of them")
	case len(c.Filter) == 0 && len(c.Tasks) == 0:
		return false, newUsageError("which tasks? give their ids, or pick them by --filter")
	}
	return len(c.Filter) > 0, nil
}

// parseFilter reads --filter.
func (c *manyArg) parseFilter() (*wire.TaskFilter, error) {
	var f wire.TaskFilter
	for _, text := range c.Filter {
		fields, err := url.ParseQuery(strings.TrimPrefix(text, "?"))
		if err != nil {
			return nil, newUsageError("--filter %q: %v", text, err)
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
	lists := map[string]*[]string{"flow": &f.Flow, "state": &f.State, "label": &f.Label, "waits": &f.Waits}
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
		times[name].Time, err = parseSince("--filter", value, time.Now())
	case name == "version":
		f.Version, err = strconv.Atoi(value)
	default:
		return unknownFilter(name)
	}
	if err != nil {
		return newUsageError("--filter %s=%s: no value of that kind", name, value)
	}
	return nil
}

func unknownFilter(name string) error {
	near := flow.Nearest(name, []string{"flow", "version", "state", "label", "error", "waits",
		"queued", "node", "q", "id_prefix", "since", "created_from", "created_to", "ended_from",
		"ended_to", "duration_min", "duration_max"})
	if near == "" {
		return newUsageError("--filter: there is no filter %q", name)
	}
	return newUsageError("--filter: there is no filter %q; did you mean %s?", name, near)
}

// runBulk sends a command to all tasks that --filter selects.
func (c *manyArg) runBulk(ctx context.Context, a *app, b wire.Bulk) error {
	server, err := c.newClient()
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
	all := wire.BulkDone{Action: b.Action, Exact: true, Refusals: []wire.BulkRefusal{}}
	for {
		done, err := server.Bulk(ctx, b)
		if err != nil {
			return fmt.Errorf("after %s: %w", bulkText(&all), err)
		}
		all.Tasks, all.Changed, all.Unchanged, all.Refused = all.Tasks+done.Tasks,
			all.Changed+done.Changed, all.Unchanged+done.Unchanged, all.Refused+done.Refused
		all.Refusals, all.Started = append(all.Refusals, done.Refusals...), append(all.Started, done.Started...)
		if b.Cursor = done.Next; b.Cursor == "" {
			return c.showBulk(a, &all)
		}
	}
}

// bulkAnew starts a new task for each one that --filter selects. It selects only tasks created
// before now, because the new tasks might match as well.
func (c *manyArg) bulkAnew(ctx context.Context, a *app, b wire.Bulk, version string) (err error) {
	if b.Version, b.Newest, err = versionFlag(version); err != nil {
		return err
	}
	server, err := c.newClient()
	if err != nil {
		return err
	}
	info, err := server.Info(ctx)
	if err != nil {
		return err
	}
	c.Filter = append([]string{url.Values{"created_to": {info.Now.UTC().Format(time.RFC3339Nano)}}.Encode()}, c.Filter...)
	return c.runBulk(ctx, a, b)
}

// confirmBulk prints how many tasks match, and asks the user for confirmation.
func confirmBulk(ctx context.Context, a *app, server *client.Client, b wire.Bulk) (bool, error) {
	b.DryRun = true
	there, err := server.Bulk(ctx, b)
	if err != nil {
		return false, err
	}
	many := formatCount(there.Tasks, "task")
	switch {
	case !there.Exact && there.Tasks == 0: // not all tasks were searched
		many = "all tasks that are found"
	case !there.Exact:
		many = "at least " + many
	case there.Tasks == 0:
		fmt.Fprintf(a.stderr, "There is no task to %s.\n", b.Action)
		return false, nil
	}
	fmt.Fprintf(a.stderr, "%s %s? Type yes to confirm: ", strings.ToUpper(b.Action[:1])+b.Action[1:], many)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if said := strings.ToLower(strings.TrimSpace(answer)); said == "yes" || said == "y" {
		return true, nil
	}
	if err != nil { // there is no user at a terminal
		fmt.Fprintln(a.stderr)
		return false, newUsageError("nothing was done to %s: nobody confirmed it; --yes does not ask", many)
	}
	return false, fmt.Errorf("nothing was done to %s", many)
}

// shownRefusals is the number of refusals that are printed for people.
const shownRefusals = 20

func (c *manyArg) showBulk(a *app, done *wire.BulkDone) error {
	if c.isJSON() {
		if err := printJSON(a.stdout, done); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(a.stdout, bulkText(done))
		if err := printRefusals(a, done.Refusals); err != nil {
			return err
		}
	}
	if done.Refused > 0 {
		return errFailed
	}
	return nil
}

func printRefusals(a *app, refusals []wire.BulkRefusal) error {
	if len(refusals) == 0 {
		return nil
	}
	var rows [][]string
	for _, r := range refusals[:min(len(refusals), shownRefusals)] {
		rows = append(rows, []string{r.Task, r.What})
	}
	if err := printTable(a.stdout, []string{"TASK", "REFUSED BECAUSE"}, rows); err != nil {
		return err
	}
	if more := len(refusals) - shownRefusals; more > 0 {
		fmt.Fprintf(a.stdout, "… and %d more: -o json lists all\n", more)
	}
	return nil
}

// bulkDid holds the past participles of actions.
var bulkDid = map[string]string{"retry": "retried", "cancel": "canceled", "pause": "paused",
	"resume": "resumed", "rerun": "done again", "fork": "gone on from"}

func bulkText(done *wire.BulkDone) string {
	text := fmt.Sprintf("%s: %d %s", formatCount(done.Tasks, "task"), done.Changed, bulkDid[done.Action])
	if done.Unchanged > 0 {
		text += fmt.Sprintf(", %d as before", done.Unchanged)
	}
	if done.Refused > 0 {
		text += fmt.Sprintf(", %d refused", done.Refused)
	}
	return text
}
