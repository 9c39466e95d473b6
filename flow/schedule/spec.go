package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow/duration"
)

// CatchUp is the treatment of missed slots.
type CatchUp string

// Values of catchup.
const (
	CatchUpOne  CatchUp = "one"  // only the last slot fires
	CatchUpNone CatchUp = "none" // no slot fires
	CatchUpAll  CatchUp = "all"  // each slot fires, up to the last MaxCatchUp
)

// Overlap is the treatment of a slot while a task of the schedule still runs.
type Overlap string

// Values of overlap.
const (
	OverlapAllow Overlap = "allow" // the slot fires
	OverlapSkip  Overlap = "skip"  // the slot is skipped
	// OverlapQueue means that the slot waits for the end of the running tasks. One slot waits;
	// others are skipped.
	OverlapQueue  Overlap = "queue"
	OverlapCancel Overlap = "cancel_running" // the running tasks are canceled
)

const (
	// MaxCatchUp is the maximum number of missed slots that fire.
	MaxCatchUp = 1000
	// MaxLate is the delay after which a slot counts as missed.
	MaxLate = 10 * time.Second
	// MaxJitter is the maximum jitter.
	MaxJitter = time.Hour
	// MinEvery is the minimum time between slots.
	MinEvery = time.Second
)

// Spec holds the times of a schedule, and the treatment of slots that cannot fire at once.
// Defaults: catchup is one, overlap is allow, the time zone is UTC, and dst is a rule that suits
// the expression (see Rule.DST).
type Spec struct {
	Cron string `json:"cron,omitempty"` // five fields, six with seconds, or a word such as @daily

	// EveryMS replaces Cron: the interval of slots, counted from StartAt or the beginning of 1970.
	EveryMS  int64  `json:"every_ms,omitempty"`
	Timezone string `json:"timezone,omitempty"` // time zone of the cron expression
	// DST applies to the cron expression: once or twice, skip or shift, or one of each, such as
	// once,shift.
	DST      string  `json:"dst,omitempty"`
	CatchUp  CatchUp `json:"catchup,omitempty"`
	Overlap  Overlap `json:"overlap,omitempty"`
	JitterMS int64   `json:"jitter_ms,omitempty"` // maximum delay of a task after its slot
	StartAt  int64   `json:"start_at,omitempty"`  // no slot is earlier; 0 if unlimited
	EndAt    int64   `json:"end_at,omitempty"`    // all slots are earlier; 0 if unlimited
}

// NoInterval is the error text for an interval of 0.
const NoInterval = "0 is no time between slots: write one of 1s or more, such as 15m"

// OrDefault returns the spec with the defaults filled in.
func (s Spec) OrDefault() Spec {
	if s.CatchUp == "" {
		s.CatchUp = CatchUpOne
	}
	if s.Overlap == "" {
		s.Overlap = OverlapAllow
	}
	if every, ok := strings.CutPrefix(s.Cron, "@every "); ok && s.EveryMS == 0 {
		if d, err := duration.Parse(strings.TrimSpace(every)); err == nil && d > 0 {
			s.Cron, s.EveryMS = "", d.Milliseconds()
		}
	}
	return s
}

// SameTimes reports whether two specs have the same slots, which fire at the same times.
func (s Spec) SameTimes(other Spec) bool {
	s.CatchUp, s.Overlap, other.CatchUp, other.Overlap = "", "", "", ""
	return s == other
}

// Fault is an error in a field of a Spec.
type Fault struct{ Field, Msg string }

func (f *Fault) Error() string { return f.Field + ": " + f.Msg }

// Faults lists all faults of a Spec, at most one for each field.
type Faults []*Fault

// Error returns all faults in one line.
func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i, fault := range f {
		texts[i] = fault.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the faults as single errors.
func (f Faults) Unwrap() []error {
	list := make([]error, len(f))
	for i, fault := range f {
		list[i] = fault
	}
	return list
}

// Add appends a fault, unless the field has a fault already.
func (f *Faults) Add(field, format string, args ...any) {
	if !slices.ContainsFunc(*f, func(known *Fault) bool { return known.Field == field }) {
		*f = append(*f, &Fault{field, fmt.Sprintf(format, args...)})
	}
}

// Err returns the faults as an error, or nil if there are none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// Read parses a spec. The error is of type Faults.
func Read(s Spec) (*Rule, error) {
	interval := "every" // field that holds the interval
	if s.Cron != "" {
		interval = "cron"
	}
	s = s.OrDefault()
	r, faults := &Rule{spec: s}, Faults{}
	var err error
	if r.zone, err = Zone(s.Timezone); err != nil {
		faults.Add("timezone", "%v", err)
	}
	switch {
	case s.Cron != "" && s.EveryMS != 0:
		faults.Add("every", "cron says already when it fires: leave one of them out")
	case s.Cron != "":
		r.readCron(&faults)
	case s.EveryMS == 0:
		faults.Add("cron", "nothing says when it fires: write cron, such as 30 2 * * *, or every, such as 15m")
	case s.EveryMS < MinEvery.Milliseconds():
		faults.Add(interval, "the interval is shorter than %s: write 1s or more, such as 15m", MinEvery)
	}
	if s.Cron == "" && s.EveryMS != 0 && s.DST != "" {
		faults.Add("dst", "means nothing beside every, for which clocks that are put forward or back do not matter: leave it out")
	}
	s.checkRest(&faults)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

// readCron parses the cron expression of the spec, and the treatment of its slots when clocks
// change.
func (r *Rule) readCron(faults *Faults) {
	var usual dstRule
	cron, err := parseCron(r.spec.Cron)
	if err != nil {
		faults.Add("cron", "%v", err)
	} else {
		r.cron, usual = cron, dstOf(cron)
		epoch := time.Unix(0, 0).UTC()
		if _, ok := cron.nextMatch(epoch, epoch.AddDate(searchYears, 0, 0)); !ok {
			faults.Add("cron", "%.80q names a day that never comes", r.spec.Cron)
		}
	}
	if r.dst, err = readDST(r.spec.DST, usual); err != nil {
		faults.Add("dst", "%v", err)
	}
}

// checkRest checks the fields that are independent of the expression.
func (s *Spec) checkRest(faults *Faults) {
	switch s.CatchUp {
	case CatchUpOne, CatchUpNone, CatchUpAll:
	default:
		faults.Add("catchup", "unknown word %.40q: write one, none or all", s.CatchUp)
	}
	switch s.Overlap {
	case OverlapAllow, OverlapSkip, OverlapQueue, OverlapCancel:
	default:
		faults.Add("overlap", "unknown word %.40q: write allow, skip, queue or cancel_running", s.Overlap)
	}
	if s.JitterMS < 0 || s.JitterMS > MaxJitter.Milliseconds() {
		faults.Add("jitter", "is to be no more than %s", MaxJitter)
	}
	switch {
	case s.StartAt < 0:
		faults.Add("start", "is before 1970")
	case s.EndAt < 0:
		faults.Add("end", "is before 1970")
	case s.EndAt != 0 && s.EndAt <= s.StartAt:
		faults.Add("end", "is not behind start")
	}
}

// DST returns the rule for repeated and skipped times, such as once,shift. It returns "" for an
// interval.
func (r *Rule) DST() string {
	if r.cron == nil {
		return ""
	}
	return r.dst.String()
}

// Warnings returns notes about settings that are probably not intended.
func (r *Rule) Warnings() (list []string) {
	if r.cron == nil {
		return nil
	}
	if r.cron.numbered { // other programs with a seconds field count from 1 = Sunday
		list = append(list, fmt.Sprintf("weekdays count from 0 = Sunday, as in crontab: this "+
			"one means %s; names such as mon say it for everybody", r.cron.weekdayNames()))
	}
	if r.spec.DST != "" && r.zone == time.UTC {
		list = append(list, "dst means nothing in UTC, where no clock is put forward or back: set timezone, such as Europe/Berlin")
	}
	return list
}

// Notes returns notes about effects of an expression that may surprise, although crontab has the
// same effects.
func (r *Rule) Notes() (list []string) {
	if r.cron == nil {
		return nil
	}
	if !r.cron.anyDay && !r.cron.anyWeekday {
		list = append(list, fmt.Sprintf("both the day of the month and the weekday are set: as "+
			"in crontab it fires when one of them fits, also each %s; write * for one of them, "+
			"or check the other one in the flow", r.cron.weekdayNames()))
	}
	return append(list, r.cron.unevenNotes...)
}

// Key returns the idempotency key of a slot's task, so that a slot has only one task.
func Key(id string, slot int64) string { return "schedule/" + id + "/" + strconv.FormatInt(slot, 10) }

// Labels with the origin of a task.
const (
	LabelBy   = "triggered_by"
	LabelName = "schedule"
	LabelSlot = "slot"
)

// Values of LabelBy.
const (
	BySchedule = "schedule"
	ByBackfill = "backfill"
	ByHand     = "manual"
	ByCommand  = "cli" // started with the command line, without a schedule
)

// Labels returns the labels of a task that a schedule started for a slot. slot is 0 if there is
// none.
func Labels(name, by string, slot int64, more map[string]string) map[string]string {
	labels := map[string]string{}
	for key, text := range more {
		labels[key] = text
	}
	labels[LabelBy], labels[LabelName] = by, name
	if slot != 0 {
		labels[LabelSlot] = time.UnixMilli(slot).UTC().Format(time.RFC3339)
	}
	return labels
}

// Apart returns the labels of a task without those of its origin. A fork or a rerun has another
// origin, and does not belong to the schedule.
func Apart(labels map[string]string) map[string]string {
	others := maps.Clone(labels)
	for _, name := range []string{LabelBy, LabelName, LabelSlot} {
		delete(others, name)
	}
	return others
}
