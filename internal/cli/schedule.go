package cli

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
)

type scheduleCmd struct {
	List     scheduleListCmd     `cmd:"" help:"List the schedules."`
	Show     scheduleShowCmd     `cmd:"" help:"Show a schedule and its next slots."`
	Set      scheduleSetCmd      `cmd:"" help:"Make a schedule, or change it."`
	Enable   scheduleEnableCmd   `cmd:"" help:"Have schedules fire."`
	Disable  scheduleDisableCmd  `cmd:"" help:"Have schedules fire no longer."`
	Trigger  scheduleTriggerCmd  `cmd:"" help:"Start a task of a schedule now, whatever its slots say."`
	Next     scheduleNextCmd     `cmd:"" help:"Tell the next slots, of a schedule or of an expression."`
	Backfill scheduleBackfillCmd `cmd:"" help:"Start tasks for slots that have passed."`
	Delete   scheduleDeleteCmd   `cmd:"" help:"Delete schedules. Their tasks stay as they are."`
}

type scheduleListCmd struct {
	remoteFlags
	pagingFlags
	Flow string `complete:"flow" help:"Only those of this flow."`
}

func (c *scheduleListCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	list, err := readPage(c.pagingFlags, func(p client.Paging) (*wire.Page[wire.Schedule],
		error) {
		return server.Schedules(ctx, c.Flow, p)
	})
	if err != nil {
		return err
	}
	t := table{header: []string{"SCHEDULE", "FLOW", "WHEN", "TIME ZONE", "STATE", "NEXT", "LAST",
		"LAST TASK"}, spare: []string{"LAST TASK", "LAST", "TIME ZONE"}}
	return printPage(a, c.outputFlag, list, t, func(s *wire.Schedule) []string {
		return []string{s.Name, s.Flow, formatTiming(s), s.Timezone, stateOfSchedule(s),
			formatTime(s.Next), formatTime(s.LastSlot), s.LastTask}
	})
}

// formatTiming describes when a schedule fires, in the words with which it was set.
func formatTiming(s *wire.Schedule) string {
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
	case s.Next.IsZero():
		return "over"
	}
	return "enabled"
}

type scheduleShowCmd struct {
	remoteFlags
	Schedule string `arg:"" complete:"schedule" help:"Name of the schedule."`
}

// slotsShown is the number of next slots that are shown.
const slotsShown = 5

func (c *scheduleShowCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	s, err := server.Schedule(ctx, c.Schedule)
	if err != nil {
		return err
	}
	if c.isJSON() {
		return printJSON(a.stdout, s)
	}
	if err := printSchedule(a, s); err != nil || !s.Enabled || s.Next.IsZero() {
		return err
	}
	slots, err := server.NextSlots(ctx, c.Schedule, slotsShown, time.Time{})
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	slots.ClockChange = nil // printed above
	return printSlots(a, slots)
}

func printSchedule(a *app, s *wire.Schedule) error {
	source := "set by hand"
	if s.Version > 0 {
		source = fmt.Sprintf("version %d of the flow", s.Version)
	}
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		labels = append(labels, name+"="+s.Labels[name])
	}
	return printFields(a.stdout, "Schedule", s.Name, "Flow", s.Flow, "When", formatTiming(s),
		"Time zone", s.Timezone, "DST", s.DST, "State", stateOfSchedule(s), "Source", source,
		"Catch-up", s.CatchUp, "Overlap", s.Overlap, "Jitter", s.Jitter, "Start",
		formatTime(s.Start), "End", formatTime(s.End), "Params", string(s.Params), "Labels",
		strings.Join(labels, ", "),
		"Next", formatTime(s.Next), "Clock change", changeText(s.ClockChange), "Waiting",
		formatTime(s.Waiting), "Last", formatTime(s.LastSlot), "Last task", s.LastTask, "Begun",
		fmt.Sprint(s.Begun), "Skipped", fmt.Sprint(s.Skipped),
		"Error", s.Error)
}

// changeText describes the effect of a clock change on slots; "" if there is none.
func changeText(change *wire.ClockChange) string {
	if change == nil {
		return ""
	}
	return change.Note
}

func printSlots(a *app, slots *wire.Slots) error {
	rows := make([][]string, len(slots.Items))
	for i, s := range slots.Items {
		rows[i] = []string{formatPreciseTime(s.Slot), s.Local, strings.Join(s.Notes, "; ")}
	}
	if err := printTable(a.stdout, []string{"SLOT", "WALL CLOCK", "NOTES"}, rows); err != nil || slots.ClockChange == nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "\nClock change: %s\n", sanitizeText(slots.ClockChange.Note))
	return err
}

// timingFlags holds the flags that define when a schedule fires.
type timingFlags struct {
	Cron     string         `xor:"when" placeholder:"EXPRESSION" help:"Minute, hour, day of the month, month and weekday, such as '30 2 * * mon-fri'; with seconds a sixth field in front; or @hourly, @daily, @weekly, @monthly, @yearly."`
	Every    *time.Duration `xor:"when" placeholder:"DURATION" help:"A slot each such time, such as 15m."`
	Timezone string         `placeholder:"ZONE" help:"Of the expression, such as Europe/Berlin; UTC by default."`
	DST      string         `name:"dst" placeholder:"WORDS" help:"What becomes of times that come twice (once, twice) and of those that do not exist (skip, shift) when the clock is put back or forward, such as once,shift; by default what suits the expression."`
	Jitter   time.Duration  `placeholder:"DURATION" help:"How much later than its slot a task may begin."`
	Start    zonedTime      `placeholder:"TIME" help:"No slot is before it (RFC 3339, or a date in the time zone)."`
	End      zonedTime      `placeholder:"TIME" help:"All slots are before it (RFC 3339, or a date in the time zone)."`
}

func (t *timingFlags) scheduleSpec(a *app) (spec wire.ScheduleSpec, err error) {
	every := ""
	if t.Every != nil {
		if every = t.Every.String(); *t.Every <= 0 {
			return spec, newUsageError("--every: %s", schedule.NoInterval)
		}
	}
	times, err := a.inZone(t.Timezone, zonedFlag{"start", t.Start}, zonedFlag{"end", t.End})
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
	remoteFlags
	Schedule string `arg:"" complete:"schedule" help:"Name of the schedule."`
	Flow     string `required:"" complete:"flow" help:"The flow whose tasks are started: its slug or id."`
	timingFlags
	CatchUp  string            `name:"catchup" enum:"one,none,all," default:"" help:"What becomes of slots that nobody looked at in time: the last one fires (one, by default), none, or all."`
	Overlap  string            `enum:"allow,skip,queue,cancel_running," default:"" help:"What becomes of a slot while a task of the schedule runs: it fires (allow, by default), it is skipped (skip), one waits (queue), or what runs is canceled (cancel_running)."`
	Params   string            `short:"p" placeholder:"JSON" help:"What its tasks are started with."`
	Label    map[string]string `placeholder:"NAME=TEXT" help:"A label of its tasks; may be given several times."`
	Disabled bool              `help:"It does not fire until it is enabled."`
}

// Help describes how slots become tasks.
func (scheduleSetCmd) Help() string {
	return `Each slot has one task, whatever happens to members meanwhile. All of the schedule is set: what is left out is as by default, but whether it is enabled stays as it was.
Where the clock of the time zone is put forward or back, nothing is lost: the answer says what the next change does, troupe schedule next shows it, and --dst says otherwise.`
}

func (c *scheduleSetCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	if c.Flow, err = flowNamed(ctx, server, c.Flow); err != nil {
		return err
	}
	spec, err := c.scheduleSpec(a)
	if err != nil {
		return err
	}
	spec.Flow, spec.CatchUp, spec.Overlap, spec.Params, spec.Labels = c.Flow, c.CatchUp, c.Overlap, json.RawMessage(c.Params), c.Label
	if c.Params != "" && !json.Valid(spec.Params) {
		return newUsageError("--params %s is no valid JSON", c.Params)
	}
	if c.Disabled {
		spec.Enabled = new(bool)
	}
	set, err := server.SetSchedule(ctx, c.Schedule, spec)
	if err != nil {
		return err
	}
	for _, warning := range set.Warnings {
		fmt.Fprintf(a.stderr, "warning: %s\n", sanitizeText(warning))
	}
	for _, note := range set.Notes {
		fmt.Fprintf(a.stderr, "note: %s\n", sanitizeText(note))
	}
	if c.isJSON() {
		return printJSON(a.stdout, set)
	}
	fmt.Fprintf(a.stdout, "%s: %s\n", sanitizeText(set.Name), nextOf(&set.Schedule))
	if set.ClockChange != nil {
		fmt.Fprintf(a.stdout, "%s: %s\n", sanitizeText(set.Name), sanitizeText(set.ClockChange.Note))
	}
	return nil
}

// nextOf describes when a schedule fires next.
func nextOf(s *wire.Schedule) string {
	switch {
	case !s.Enabled:
		return "disabled"
	case s.Next.IsZero():
		return "it has no further slot"
	}
	return "next at " + formatTime(s.Next)
}

// scheduleNames holds the names of schedules for one action.
type scheduleNames struct {
	remoteFlags
	Schedules []string `arg:"" name:"schedule" complete:"schedule" help:"Names of schedules."`
}

func (c *scheduleNames) forEachSchedule(a *app, do func(*client.Client, string) (*wire.Schedule,
	error), say func(*wire.Schedule) string) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	for _, name := range c.Schedules {
		s, err := do(server, name)
		switch {
		case err != nil:
			return err
		case c.isJSON():
			err = printLine(a.stdout, s)
		default:
			_, err = fmt.Fprintf(a.stdout, "%s: %s\n", sanitizeText(s.Name), say(s))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type scheduleEnableCmd struct{ scheduleNames }

func (c *scheduleEnableCmd) Run(ctx context.Context, a *app) error {
	return c.forEachSchedule(a, func(server *client.Client, name string) (*wire.Schedule, error) {
		return server.EnableSchedule(ctx, name)
	}, nextOf)
}

type scheduleDisableCmd struct{ scheduleNames }

func (c *scheduleDisableCmd) Run(ctx context.Context, a *app) error {
	return c.forEachSchedule(a, func(server *client.Client, name string) (*wire.Schedule, error) {
		return server.DisableSchedule(ctx, name)
	}, nextOf)
}

type scheduleDeleteCmd struct{ scheduleNames }

func (c *scheduleDeleteCmd) Run(ctx context.Context, a *app) error {
	return c.forEachSchedule(a, func(server *client.Client, name string) (*wire.Schedule, error) {
		return server.DeleteSchedule(ctx, name)
	},
		func(*wire.Schedule) string { return "deleted" })
}

type scheduleTriggerCmd struct {
	remoteFlags
	Schedule string `arg:"" complete:"schedule" help:"Name of the schedule."`
	Params   string `short:"p" placeholder:"JSON" help:"What the task is started with, in place of what the schedule says."`
	Key      string `help:"The same key for the same flow is the same task."`
}

func (c *scheduleTriggerCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	if c.Params != "" && !json.Valid([]byte(c.Params)) {
		return newUsageError("--params %s is no valid JSON", c.Params)
	}
	started, err := server.TriggerSchedule(ctx, c.Schedule, wire.Trigger{Params: json.RawMessage(c.Params), IdempotencyKey: c.Key})
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printJSON(a.stdout, started)
	}
	fmt.Fprintln(a.stdout, sanitizeText(started.ID))
	return nil
}

type scheduleNextCmd struct {
	remoteFlags
	Schedule string    `arg:"" optional:"" complete:"schedule" help:"Name of the schedule; none = what --cron or --every says."`
	Count    int       `short:"n" default:"10" help:"How many (${default})."`
	From     zonedTime `placeholder:"TIME" help:"Slots from then on (RFC 3339, or a date in the schedule's time zone); now by default."`
	timingFlags
}

func (c *scheduleNextCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	said := c.Cron != "" || c.Every != nil
	if said == (c.Schedule != "") {
		return newUsageError("name a schedule, or say --cron or --every")
	}
	if !said && c.timingFlags != (timingFlags{}) {
		return newUsageError("--timezone, --dst, --jitter, --start and --end are for --cron and "+
			"--every: the schedule %s has its own", c.Schedule)
	}
	slots, err := c.fetchSlots(ctx, a, server, said)
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printJSON(a.stdout, slots)
	}
	return printSlots(a, slots)
}

// fetchSlots returns the slots of the given expression, or of the schedule.
func (c *scheduleNextCmd) fetchSlots(ctx context.Context, a *app, server *client.Client, said bool) (*wire.Slots, error) {
	zone := c.Timezone
	if !said && c.From.isSet() {
		s, err := server.Schedule(ctx, c.Schedule)
		if err != nil {
			return nil, err
		}
		zone = s.Timezone
	}
	from, err := a.inZone(zone, zonedFlag{"from", c.From})
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
	remoteFlags
	Schedule string    `arg:"" complete:"schedule" help:"Name of the schedule."`
	From     zonedTime `required:"" placeholder:"TIME" help:"The first slot is then or later (RFC 3339, or a date in the schedule's time zone)."`
	To       zonedTime `required:"" placeholder:"TIME" help:"All slots are before it (RFC 3339, or a date in the schedule's time zone)."`
	DryRun   bool      `help:"Tell for which slots tasks would begin, and start none."`
}

// Help describes what a backfill does not change.
func (scheduleBackfillCmd) Help() string {
	return `A slot that has had its task gets no other one, so it may be called again. All ` +
		`tasks begin at once; a flow with concurrency holds them back.`
}

func (c *scheduleBackfillCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	s, err := server.Schedule(ctx, c.Schedule)
	if err != nil {
		return err
	}
	times, err := a.inZone(s.Timezone, zonedFlag{"from", c.From}, zonedFlag{"to", c.To})
	if err != nil {
		return err
	}
	done, err := server.BackfillSchedule(ctx, c.Schedule,
		wire.Backfill{From: wire.Time{Time: times[0]}, To: wire.Time{Time: times[1]}, DryRun: c.DryRun})
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printJSON(a.stdout, done)
	}
	zone, err := schedule.Zone(s.Timezone)
	if err != nil {
		return err
	}
	rows := make([][]string, len(done.Items))
	for i, item := range done.Items {
		state := "has had its task"
		switch {
		case item.Created && c.DryRun:
			state = "would begin"
		case item.Created:
			state = "begun"
		}
		rows[i] = []string{formatPreciseTime(item.Slot), localText(item.Slot, zone), item.Task, state}
	}
	return printTable(a.stdout, []string{"SLOT", "WALL CLOCK", "TASK", "STATE"}, rows)
}
