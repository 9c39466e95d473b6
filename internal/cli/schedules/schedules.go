// Package schedules has the commands that work on schedules.
package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/cli/tasks"
)

// Command holds the commands for schedules.
type Command struct {
	List     scheduleListCmd     `cmd:"" help:"List schedules."`
	Show     scheduleShowCmd     `cmd:"" help:"Show a schedule and its next slots."`
	Set      scheduleSetCmd      `cmd:"" help:"Create or replace a schedule."`
	Enable   scheduleEnableCmd   `cmd:"" help:"Enable schedules."`
	Disable  scheduleDisableCmd  `cmd:"" help:"Disable schedules."`
	Trigger  scheduleTriggerCmd  `cmd:"" help:"Start a task of a schedule now."`
	Next     scheduleNextCmd     `cmd:"" help:"List the next slots of a schedule or an expression."`
	Backfill scheduleBackfillCmd `cmd:"" help:"Start tasks for past slots."`
	Delete   scheduleDeleteCmd   `cmd:"" help:"Delete schedules. Their tasks are kept."`
}

type scheduleListCmd struct {
	console.RemoteFlags
	console.PagingFlags
	Flow string `complete:"flow" help:"Filter by flow."`
}

func (c *scheduleListCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	list, err := console.ReadPage(c.PagingFlags, func(p client.Paging) (*wire.Page[wire.Schedule],
		error) {
		return server.Schedules(ctx, c.Flow, p)
	})
	if err != nil {
		return err
	}
	t := console.Table{Header: []string{"SCHEDULE", "FLOW", "TIMING", "TIME ZONE", "STATE", "NEXT", "LAST",
		"LAST TASK"}, Spare: []string{"LAST TASK", "LAST", "TIME ZONE"}}
	return console.PrintPage(a, c.OutputFlag, list, t, func(s *wire.Schedule) []string {
		return []string{s.Name, s.Flow, FormatTiming(s), s.Timezone, stateOfSchedule(s),
			console.FormatTime(s.NextAt), console.FormatTime(s.LastSlot), s.LastTask}
	})
}

// FormatTiming describes when a schedule fires, in the words with which it was set.
func FormatTiming(s *wire.Schedule) string {
	if s.Every != "" {
		return "every " + s.Every
	}
	return s.Cron
}

func stateOfSchedule(s *wire.Schedule) string {
	switch {
	case !s.Enabled:
		return "disabled"
	case s.Error != "":
		return "failing"
	case s.NextAt.IsZero():
		return "ended"
	}
	return "enabled"
}

type scheduleShowCmd struct {
	console.RemoteFlags
	Schedule string `arg:"" complete:"schedule" help:"Schedule name."`
}

// slotsShown is the number of next slots that are shown.
const slotsShown = 5

func (c *scheduleShowCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	s, err := server.Schedule(ctx, c.Schedule)
	if err != nil {
		return err
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, s)
	}
	if err := printSchedule(a, s); err != nil || !s.Enabled || s.NextAt.IsZero() {
		return err
	}
	slots, err := server.NextSlots(ctx, c.Schedule, slotsShown, time.Time{})
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Stdout)
	slots.ClockChange = nil // printed above
	return printSlots(a, slots)
}

func printSchedule(a *console.App, s *wire.Schedule) error {
	source := "API"
	if s.Version > 0 {
		source = fmt.Sprintf("version %d of the flow", s.Version)
	}
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		labels = append(labels, name+"="+s.Labels[name])
	}
	return console.PrintFields(a.Stdout, "Schedule", s.Name, "Flow", s.Flow, "Timing", FormatTiming(s),
		"Time zone", s.Timezone, "DST", s.DST, "State", stateOfSchedule(s), "Source", source,
		"Catch-up", s.CatchUp, "Overlap", s.Overlap, "Jitter", s.Jitter, "Start",
		console.FormatTime(s.Start), "End", console.FormatTime(s.End), "Params", string(s.Params), "Labels",
		strings.Join(labels, ", "),
		"Next", console.FormatTime(s.NextAt), "Clock change", changeText(s.ClockChange), "Waiting",
		console.FormatTime(s.WaitingSlot), "Last", console.FormatTime(s.LastSlot), "Last task", s.LastTask, "Started",
		fmt.Sprint(s.StartedCount), "Skipped", fmt.Sprint(s.SkippedCount),
		"Error", s.Error)
}

// changeText describes the effect of a clock change on slots; "" if there is none.
func changeText(change *wire.ClockChange) string {
	if change == nil {
		return ""
	}
	return change.Note
}

func printSlots(a *console.App, slots *wire.Slots) error {
	rows := make([][]string, len(slots.Items))
	for i, s := range slots.Items {
		rows[i] = []string{console.FormatPreciseTime(s.Slot), s.Local, strings.Join(s.Notes, "; ")}
	}
	if err := console.PrintTable(a.Stdout, []string{"SLOT", "WALL CLOCK", "NOTES"}, rows); err != nil || slots.ClockChange == nil {
		return err
	}
	_, err := fmt.Fprintf(a.Stdout, "\nClock change: %s\n", console.SanitizeText(slots.ClockChange.Note))
	return err
}

// timingFlags holds the flags that define when a schedule fires.
type timingFlags struct {
	Cron     string            `xor:"when" placeholder:"EXPRESSION" help:"Cron expression: minute, hour, day of month, month, weekday, such as '30 2 * * mon-fri'. An optional first field sets seconds. Also @hourly, @daily, @weekly, @monthly, @yearly."`
	Every    *time.Duration    `xor:"when" placeholder:"DURATION" help:"Interval between slots, such as 15m."`
	Timezone string            `placeholder:"ZONE" help:"Time zone, such as Europe/Berlin (UTC)."`
	DST      string            `name:"dst" placeholder:"RULES" help:"Handling of clock changes: repeated times fire once or twice; missing times are skipped (skip) or moved (shift). Example: once,shift. The default depends on the expression."`
	Jitter   time.Duration     `placeholder:"DURATION" help:"Maximum random delay after a slot."`
	Start    console.ZonedTime `placeholder:"TIME" help:"Earliest slot (RFC 3339, or a date in the time zone)."`
	End      console.ZonedTime `placeholder:"TIME" help:"End of the slots, exclusive (RFC 3339, or a date in the time zone)."`
}

func (t *timingFlags) scheduleSpec(a *console.App) (spec wire.ScheduleSpec, err error) {
	every := ""
	if t.Every != nil {
		if every = t.Every.String(); *t.Every <= 0 {
			return spec, console.NewUsageError("--every: %s", schedule.NoInterval)
		}
	}
	times, err := a.ResolveZone(t.Timezone, console.ZonedFlag{Name: "start", Time: t.Start}, console.ZonedFlag{Name: "end", Time: t.End})
	if err != nil {
		return spec, err
	}
	return wire.ScheduleSpec{Cron: t.Cron, Every: every, Timezone: t.Timezone, DST: t.DST, Jitter: durationText(t.Jitter),
		Start: wire.Time{Time: times[0]}, End: wire.Time{Time: times[1]}}, nil
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

type scheduleSetCmd struct {
	console.RemoteFlags
	Schedule string `arg:"" complete:"schedule" help:"Schedule name."`
	Flow     string `required:"" complete:"flow" help:"Flow slug or ID."`
	timingFlags
	CatchUp string `name:"catchup" enum:"one,none,all," default:"" help:"Missed slots that fire: the last one (one, default), none or all."`
	Overlap string `enum:"allow,skip,queue,cancel_running," default:"" help:"Handling of a slot while a task of the schedule runs: allow (default), skip, queue (one slot waits) or cancel_running."`
	tasks.ParamFlags
	Label    map[string]string `placeholder:"NAME=TEXT" help:"Label of its tasks. Repeatable."`
	Disabled bool              `help:"Create the schedule disabled."`
}

// Help describes how slots become tasks.
func (scheduleSetCmd) Help() string {
	return `Replaces the whole schedule: omitted flags get their defaults. Only the enabled state is kept.
Each slot starts exactly one task, also when members fail. The output describes the next clock change of the time zone; --dst changes its handling.`
}

func (c *scheduleSetCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	if c.Flow, err = console.FindFlow(ctx, server, c.Flow); err != nil {
		return err
	}
	spec, err := c.scheduleSpec(a)
	if err != nil {
		return err
	}
	params, err := c.BuildParams(a, nil, tasks.NewInputsLookup(ctx, server, c.Flow, 0))
	if err != nil {
		return err
	}
	spec.Flow, spec.CatchUp, spec.Overlap, spec.Params, spec.Labels = c.Flow, c.CatchUp, c.Overlap, params, c.Label
	if c.Disabled {
		spec.Enabled = new(bool)
	}
	set, err := server.SetSchedule(ctx, c.Schedule, spec)
	if err != nil {
		return err
	}
	for _, warning := range set.Warnings {
		fmt.Fprintf(a.Stderr, "warning: %s\n", console.SanitizeText(warning))
	}
	for _, note := range set.Notes {
		fmt.Fprintf(a.Stderr, "note: %s\n", console.SanitizeText(note))
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, set)
	}
	fmt.Fprintf(a.Stdout, "%s: %s\n", console.SanitizeText(set.Name), nextOf(&set.Schedule))
	if set.ClockChange != nil {
		fmt.Fprintf(a.Stdout, "%s: %s\n", console.SanitizeText(set.Name), console.SanitizeText(set.ClockChange.Note))
	}
	return nil
}

// nextOf describes when a schedule fires next.
func nextOf(s *wire.Schedule) string {
	switch {
	case !s.Enabled:
		return "disabled"
	case s.NextAt.IsZero():
		return "no further slots"
	}
	return "next at " + console.FormatTime(s.NextAt)
}

// scheduleNames holds the names of schedules for one action.
type scheduleNames struct {
	console.RemoteFlags
	Schedules []string `arg:"" name:"schedule" complete:"schedule" help:"Schedule names."`
}

func (c *scheduleNames) forEachSchedule(a *console.App, do func(*client.Client, string) (*wire.Schedule,
	error), say func(*wire.Schedule) string) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	for _, name := range c.Schedules {
		s, err := do(server, name)
		switch {
		case err != nil:
			return err
		case c.IsJSON():
			err = console.PrintLine(a.Stdout, s)
		default:
			_, err = fmt.Fprintf(a.Stdout, "%s: %s\n", console.SanitizeText(s.Name), say(s))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type scheduleEnableCmd struct{ scheduleNames }

func (c *scheduleEnableCmd) Run(ctx context.Context, a *console.App) error {
	return c.forEachSchedule(a, func(server *client.Client, name string) (*wire.Schedule, error) {
		return server.EnableSchedule(ctx, name)
	}, nextOf)
}

type scheduleDisableCmd struct{ scheduleNames }

func (c *scheduleDisableCmd) Run(ctx context.Context, a *console.App) error {
	return c.forEachSchedule(a, func(server *client.Client, name string) (*wire.Schedule, error) {
		return server.DisableSchedule(ctx, name)
	}, nextOf)
}

type scheduleDeleteCmd struct{ scheduleNames }

func (c *scheduleDeleteCmd) Run(ctx context.Context, a *console.App) error {
	return c.forEachSchedule(a, func(server *client.Client, name string) (*wire.Schedule, error) {
		return server.DeleteSchedule(ctx, name)
	},
		func(*wire.Schedule) string { return "deleted" })
}

type scheduleTriggerCmd struct {
	console.RemoteFlags
	Schedule string `arg:"" complete:"schedule" help:"Schedule name."`
	tasks.ParamFlags
	Key string `help:"Idempotency key: the same key and flow give the same task."`
}

func (c *scheduleTriggerCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	params, err := c.triggerParams(ctx, a, server)
	if err != nil {
		return err
	}
	started, err := server.TriggerSchedule(ctx, c.Schedule, wire.TriggerRequest{Params: params, IdempotencyKey: c.Key})
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, started)
	}
	fmt.Fprintln(a.Stdout, console.SanitizeText(started.ID))
	return nil
}

// triggerParams returns the params of the task: the params of the schedule, changed by the flags;
// nil means unchanged params.
func (c *scheduleTriggerCmd) triggerParams(ctx context.Context, a *console.App, server *client.Client) (json.RawMessage, error) {
	if len(c.Param) == 0 {
		return c.ReadFile(a)
	}
	s, err := server.Schedule(ctx, c.Schedule)
	if err != nil {
		return nil, err
	}
	return c.BuildParams(a, s.Params, tasks.NewInputsLookup(ctx, server, s.Flow, 0))
}

type scheduleNextCmd struct {
	console.RemoteFlags
	Schedule string            `arg:"" optional:"" complete:"schedule" help:"Schedule name. Omit it with --cron or --every."`
	Count    int               `short:"n" default:"10" help:"Number of slots (${default})."`
	From     console.ZonedTime `placeholder:"TIME" help:"Start time (RFC 3339, or a date in the schedule's time zone). Default: now."`
	timingFlags
}

func (c *scheduleNextCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	said := c.Cron != "" || c.Every != nil
	if said == (c.Schedule != "") {
		return console.NewUsageError("name a schedule, or give --cron or --every")
	}
	if !said && c.timingFlags != (timingFlags{}) {
		return console.NewUsageError("--timezone, --dst, --jitter, --start and --end need --cron or "+
			"--every: the schedule %s has its own settings", c.Schedule)
	}
	slots, err := c.fetchSlots(ctx, a, server, said)
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, slots)
	}
	return printSlots(a, slots)
}

// fetchSlots returns the slots of the given expression, or of the schedule.
func (c *scheduleNextCmd) fetchSlots(ctx context.Context, a *console.App, server *client.Client, said bool) (*wire.Slots, error) {
	zone := c.Timezone
	if !said && c.From.IsSet() {
		s, err := server.Schedule(ctx, c.Schedule)
		if err != nil {
			return nil, err
		}
		zone = s.Timezone
	}
	from, err := a.ResolveZone(zone, console.ZonedFlag{Name: "from", Time: c.From})
	if err != nil {
		return nil, err
	}
	if !said {
		return server.NextSlots(ctx, c.Schedule, c.Count, from[0])
	}
	spec, err := c.scheduleSpec(a)
	if err != nil {
		return nil, err
	}
	spec.Flow = "-" // required, but not used by a preview
	return server.PreviewSchedule(ctx, spec, c.Count, from[0])
}

type scheduleBackfillCmd struct {
	console.RemoteFlags
	Schedule string            `arg:"" complete:"schedule" help:"Schedule name."`
	From     console.ZonedTime `required:"" placeholder:"TIME" help:"Start of the time range (RFC 3339, or a date in the schedule's time zone)."`
	To       console.ZonedTime `required:"" placeholder:"TIME" help:"End of the time range, exclusive (RFC 3339, or a date in the schedule's time zone)."`
	DryRun   bool              `help:"List the slots without starting tasks."`
}

// Help describes the effects of a backfill on the schedule.
func (scheduleBackfillCmd) Help() string {
	return `Slots that already have a task are skipped, so the command can be repeated. All ` +
		`tasks start at once, within the concurrency limit of the flow.`
}

func (c *scheduleBackfillCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	s, err := server.Schedule(ctx, c.Schedule)
	if err != nil {
		return err
	}
	times, err := a.ResolveZone(s.Timezone, console.ZonedFlag{Name: "from", Time: c.From}, console.ZonedFlag{Name: "to", Time: c.To})
	if err != nil {
		return err
	}
	done, err := server.BackfillSchedule(ctx, c.Schedule,
		wire.BackfillRequest{From: wire.Time{Time: times[0]}, To: wire.Time{Time: times[1]}, DryRun: c.DryRun})
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, done)
	}
	zone, err := schedule.Zone(s.Timezone)
	if err != nil {
		return err
	}
	rows := make([][]string, len(done.Items))
	for i, item := range done.Items {
		state := "existing"
		switch {
		case item.Created && c.DryRun:
			state = "would start"
		case item.Created:
			state = "started"
		}
		rows[i] = []string{console.FormatPreciseTime(item.Slot), console.FormatLocalTime(item.Slot, zone), item.Task, state}
	}
	return console.PrintTable(a.Stdout, []string{"SLOT", "WALL CLOCK", "TASK", "STATE"}, rows)
}
