package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow/duration"
)

// cronExpr is a cron expression. Each field is a set: a bit for each number that matches.
type cronExpr struct {
	second, minute, hour, day, month, weekday uint64
	// anyDay and anyWeekday report a field written with a star; then the other field alone decides.
	anyDay, anyWeekday bool
	numbered           bool // has six fields, and a weekday as a number
	everyHour          bool
	// hasSteps reports that the minute or second has a star, a step or a range.
	hasSteps bool
	// unevenNotes are notes about steps that do not divide their fields, such as */40.
	unevenNotes []string
}

// cronField is a field of a cron expression.
type cronField struct {
	name      string
	low, high int
	words     []string // names of the numbers, from low on
	resetUnit string   // unit that restarts after high; "" if its length varies
}

var (
	months   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

	cronFields = []cronField{
		{"second", 0, 59, nil, "minute"}, {"minute", 0, 59, nil, "hour"}, {"hour", 0, 23, nil, "day"},
		{"day of the month", 1, 31, nil, ""}, {"month", 1, 12, months, ""}, {"weekday", 0, 7, weekdays, ""},
	}
)

// shorthands maps words to whole expressions.
var shorthands = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// intervalFault returns the error for a text that is not an interval of slots.
func intervalFault(text string) error {
	if _, err := duration.Parse(strings.TrimSpace(text)); err != nil {
		return fmt.Errorf("@every: %w", err)
	}
	return errors.New("@every " + NoInterval)
}

// parseCron parses five fields, six fields that begin with the second, or a shorthand.
func parseCron(text string) (*cronExpr, error) {
	if long, ok := shorthands[strings.ToLower(strings.TrimSpace(text))]; ok {
		text = long
	}
	if err := checkCrontab(text); err != nil {
		return nil, err
	}
	parts := strings.Fields(text)
	six := len(parts) == len(cronFields)
	switch {
	case strings.HasPrefix(text, "@every "):
		return nil, intervalFault(strings.TrimPrefix(text, "@every "))
	case strings.HasPrefix(text, "@"):
		return nil, fmt.Errorf("there is no %.40q: write @hourly, @daily, @weekly, @monthly or @yearly, or @every 15m", text)
	case len(parts) == len(cronFields)-1:
		parts = append([]string{"0"}, parts...)
	case !six:
		return nil, fmt.Errorf("%.80q has %d fields: write minute, hour, day of the month, "+
			"month and weekday, such as 30 2 * * 1-5; with seconds a sixth one in front", text, len(parts))
	}
	c := &cronExpr{}
	if err := checkDialect(parts); err != nil {
		return nil, err
	}
	for i, set := range []*uint64{&c.second, &c.minute, &c.hour, &c.day, &c.month, &c.weekday} {
		var err error
		if *set, err = cronFields[i].parseField(parts[i]); err != nil {
			return nil, err
		}
		c.unevenNotes = append(c.unevenNotes, cronFields[i].unevenSteps(parts[i])...)
	}
	c.everyHour = c.hour == 1<<24-1
	c.hasSteps = strings.ContainsAny(parts[0]+parts[1], "*/-")
	if c.weekday&(1<<7) != 0 { // 7 is also Sunday
		c.weekday |= 1
	}
	c.anyDay, c.anyWeekday = strings.HasPrefix(parts[3], "*"), strings.HasPrefix(parts[5], "*")
	c.numbered = six && !c.anyWeekday && strings.ContainsAny(parts[5], "0123456789")
	return c, nil
}

// checkCrontab rejects parts that crontabs and their libraries write before or after an expression.
func checkCrontab(text string) error {
	for _, before := range []string{"CRON_TZ=", "TZ="} {
		if zone, ok := strings.CutPrefix(strings.TrimSpace(text), before); ok {
			zone, rest, _ := strings.Cut(zone, " ")
			return fmt.Errorf("%s is not a part of an expression: write timezone: %.60s, and "+
				"%.80q as the expression", before, zone, strings.TrimSpace(rest))
		}
	}
	if strings.EqualFold(strings.TrimSpace(text), "@reboot") {
		return errors.New("there is no @reboot: a schedule knows nothing of the start of " +
			"members; start the task from what starts the member")
	}
	return nil
}

// checkDialect rejects notation of other cron dialects, and names the replacement.
func checkDialect(parts []string) error {
	for i, f := range cronFields {
		text := strings.ToUpper(parts[i])
		day, weekday := f.name == "day of the month", f.name == "weekday"
		switch {
		case strings.Contains(text, "?"):
			return fmt.Errorf("the %s %.40q: ? is of Quartz: write *", f.name, parts[i])
		case strings.Contains(text, "#"):
			return fmt.Errorf("the %s %.40q: # (the nth weekday of a month) is not supported: "+
				"fire each such weekday, and have the flow check the day of its slot (the first "+
				"one is on a day from 1 to 7)", f.name, parts[i])
		case (day || weekday) && hasLastDay(text):
			return fmt.Errorf("the %s %.40q: L (the last day) is not supported: write 28-31 for "+
				"the day of the month, and have the flow check whether the next day is a first",
				f.name, parts[i])
		case day && strings.ContainsAny(text, "W"):
			return fmt.Errorf("the %s %.40q: W (the nearest working day) is not supported: "+
				"write the days that it may come to, and have the flow check which it is", f.name, parts[i])
		case text == "H" || strings.HasPrefix(text, "H/") || strings.HasPrefix(text, "H("):
			return fmt.Errorf("the %s %.40q: H is of Jenkins: write a number, and set jitter to spread tasks", f.name, parts[i])
		}
	}
	return nil
}

// hasLastDay reports whether a field uses the L of Quartz, such as L, L-3, 5L or LW. Names of days
// have no such L.
func hasLastDay(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		if part == "LW" || part == "L" || strings.HasPrefix(part, "L-") || len(part) == 2 && part[1] == 'L' {
			return true
		}
	}
	return false
}

// unevenSteps returns notes about steps that do not divide their field. The last of such steps is
// shorter.
func (f *cronField) unevenSteps(text string) (notes []string) {
	if f.resetUnit == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		every, ok := strings.CutPrefix(part, "*/")
		step, err := strconv.Atoi(every)
		if !ok || err != nil || (f.high+1)%step == 0 {
			continue
		}
		last := f.high / step * step
		notes = append(notes, fmt.Sprintf("the %s %s counts anew from 0 in each %s: the last "+
			"one is at %d, and the next one %d %ss later; every, such as %d%s, keeps its distance",
			f.name, part, f.resetUnit, last, f.high+1-last, f.name, step, f.name[:1]))
	}
	return notes
}

func (f *cronField) parseField(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		some, err := f.parsePart(part)
		if err != nil {
			return 0, err
		}
		set |= some
	}
	return set, nil
}

// parsePart parses *, 5, 1-5, and each of these with a step: */15, 5/15 (from 5 to the end),
// 1-31/2.
func (f *cronField) parsePart(text string) (set uint64, err error) {
	span, every, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		if step, err = strconv.Atoi(every); err != nil || step < 1 || step > f.high {
			return 0, fmt.Errorf("the %s %.40q has no step from 1 to %d behind the /", f.name, text, f.high)
		}
	}
	from, to, ranged := strings.Cut(span, "-")
	low, high := f.low, f.high
	switch {
	case span == "*" && f.words != nil && f.low == 0:
		high-- // Sunday counts once
	case span == "*":
	case ranged:
		if low, err = f.parseNumber(from); err == nil {
			high, err = f.parseNumber(to)
		}
	default:
		if low, err = f.parseNumber(from); !stepped {
			high = low
		}
	}
	if err != nil {
		return 0, err
	}
	if low > high {
		return 0, fmt.Errorf("the %s %.40q ends before it begins: write the smaller one first, "+
			"or two ranges with a comma between them", f.name, text)
	}
	for n := low; n <= high; n += step {
		set |= 1 << n
	}
	return set, nil
}

func (f *cronField) parseNumber(text string) (int, error) {
	for i, word := range f.words {
		if strings.EqualFold(word, text) {
			return f.low + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.low || n > f.high {
		return 0, fmt.Errorf("the %s %.40q is none: write %d to %d%s", f.name, text, f.low, f.high, f.namesHint())
	}
	return n, nil
}

func (f *cronField) namesHint() string {
	if f.words == nil {
		return ""
	}
	return ", or " + f.words[0] + " to " + f.words[len(f.words)-1]
}

// searchYears is how many years a search looks ahead. The 29th of February on a given weekday
// recurs after at most forty years.
const searchYears = 41

// nextMatch returns the first matching time of the wall clock that is not before wall but is before
// the second time. Wall-clock times are represented as times in UTC.
func (c *cronExpr) nextMatch(wall, before time.Time) (time.Time, bool) {
	if whole := wall.Truncate(time.Second); whole.Before(wall) {
		wall = whole.Add(time.Second)
	}
	for wall.Before(before) {
		switch {
		case c.month&(1<<wall.Month()) == 0:
			wall = time.Date(wall.Year(), wall.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		case !c.matchesDay(wall):
			wall = time.Date(wall.Year(), wall.Month(), wall.Day()+1, 0, 0, 0, 0, time.UTC)
		case c.hour&(1<<wall.Hour()) == 0:
			wall = advanceTo(c.hour, wall.Hour(), 24, wall.Truncate(time.Hour), time.Hour)
		case c.minute&(1<<wall.Minute()) == 0:
			wall = advanceTo(c.minute, wall.Minute(), 60, wall.Truncate(time.Minute), time.Minute)
		case c.second&(1<<wall.Second()) == 0:
			wall = advanceTo(c.second, wall.Second(), 60, wall, time.Second)
		default:
			return wall, true
		}
	}
	return time.Time{}, false
}

// matchesWithin returns the first and the last matching time of the wall clock in a gap. It returns
// false if there is none.
func (c *cronExpr) matchesWithin(from, to time.Time) (first, last time.Time, ok bool) {
	first, ok = c.nextMatch(from, to)
	for at, more := first, ok; more; at, more = c.nextMatch(at.Add(time.Second), to) {
		last = at
	}
	return first, last, ok
}

// advanceTo moves the time from a number that does not match to the next matching one. If there is
// none, it moves past the last number.
func advanceTo(set uint64, number, all int, wall time.Time, unit time.Duration) time.Time {
	next := min(number+bits.TrailingZeros64(set>>number), all)
	return wall.Add(time.Duration(next-number) * unit)
}

// matchesDay reports whether a day matches. If both the day of the month and the weekday are
// restricted, one of them must match, as in crontab.
func (c *cronExpr) matchesDay(wall time.Time) bool {
	day, weekday := c.day&(1<<wall.Day()) != 0, c.weekday&(1<<wall.Weekday()) != 0
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// weekdayNames returns the weekdays of an expression.
func (c *cronExpr) weekdayNames() string {
	var names []string
	for set := c.weekday &^ (1 << 7); set != 0; set &= set - 1 {
		names = append(names, time.Weekday(bits.TrailingZeros64(set)).String())
	}
	return strings.Join(names, ", ")
}
