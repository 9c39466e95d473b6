package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// cron says which times of a wall clock are meant: a bit for each number that fits.
type cron struct {
	second, minute, hour, day, month, weekday uint64
	anyDay, anyWeekday                        bool // written with a star: then the other one decides alone
	numbered                                  bool // six fields, and a weekday by its number
}

// field is one of a cron expression.
type field struct {
	name      string
	low, high int
	words     []string // for the numbers from low on
}

var (
	months   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

	fields = []field{
		{"second", 0, 59, nil}, {"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of the month", 1, 31, nil}, {"month", 1, 12, months}, {"weekday", 0, 7, weekdays},
	}
)

// shorthands are words for whole expressions.
var shorthands = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// parseCron reads five fields, six with the second before them, or a shorthand.
func parseCron(text string) (*cron, error) {
	if long, ok := shorthands[strings.ToLower(strings.TrimSpace(text))]; ok {
		text = long
	}
	parts := strings.Fields(text)
	six := len(parts) == len(fields)
	switch {
	case strings.HasPrefix(text, "@"):
		return nil, fmt.Errorf("there is no %.40q: write @hourly, @daily, @weekly, @monthly or @yearly, or @every 15m", text)
	case len(parts) == len(fields)-1:
		parts = append([]string{"0"}, parts...)
	case !six:
		return nil, fmt.Errorf("%.80q has %d fields: write minute, hour, day of the month, month and weekday, such as 30 2 * * 1-5; with seconds a sixth one in front", text, len(parts))
	}
	c := &cron{}
	for i, set := range []*uint64{&c.second, &c.minute, &c.hour, &c.day, &c.month, &c.weekday} {
		var err error
		if *set, err = fields[i].parse(parts[i]); err != nil {
			return nil, err
		}
	}
	if c.weekday&(1<<7) != 0 { // Sunday, too
		c.weekday |= 1
	}
	c.anyDay, c.anyWeekday = strings.HasPrefix(parts[3], "*"), strings.HasPrefix(parts[5], "*")
	c.numbered = six && !c.anyWeekday && strings.ContainsAny(parts[5], "0123456789")
	return c, nil
}

func (f *field) parse(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		some, err := f.part(part)
		if err != nil {
			return 0, err
		}
		set |= some
	}
	return set, nil
}

// part reads *, 5, 1-5, and each of them with a step: */15, 5/15 (from 5 to the end), 1-31/2.
func (f *field) part(text string) (set uint64, err error) {
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
		high-- // Sunday is counted once
	case span == "*":
	case ranged:
		if low, err = f.number(from); err == nil {
			high, err = f.number(to)
		}
	default:
		if low, err = f.number(from); !stepped {
			high = low
		}
	}
	if err != nil {
		return 0, err
	}
	if low > high {
		return 0, fmt.Errorf("the %s %.40q ends before it begins: write the smaller one first, or two ranges with a comma between them", f.name, text)
	}
	for n := low; n <= high; n += step {
		set |= 1 << n
	}
	return set, nil
}

func (f *field) number(text string) (int, error) {
	for i, word := range f.words {
		if strings.EqualFold(word, text) {
			return f.low + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.low || n > f.high {
		return 0, fmt.Errorf("the %s %.40q is none: write %d to %d%s", f.name, text, f.low, f.high, f.names())
	}
	return n, nil
}

func (f *field) names() string {
	if f.words == nil {
		return ""
	}
	return ", or " + f.words[0] + " to " + f.words[len(f.words)-1]
}

// horizon is how far ahead is looked. The 29th of February on a given weekday comes back after forty years at most.
const horizon = 41

// after is the first time of the wall clock behind another one that fits; wall clocks are written as times in UTC.
func (c *cron) after(wall time.Time) (time.Time, bool) {
	wall = wall.Truncate(time.Second).Add(time.Second)
	for last := wall.AddDate(horizon, 0, 0); wall.Before(last); {
		switch {
		case c.month&(1<<wall.Month()) == 0:
			wall = time.Date(wall.Year(), wall.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		case !c.on(wall):
			wall = time.Date(wall.Year(), wall.Month(), wall.Day()+1, 0, 0, 0, 0, time.UTC)
		case c.hour&(1<<wall.Hour()) == 0:
			wall = onTo(c.hour, wall.Hour(), 24, wall.Truncate(time.Hour), time.Hour)
		case c.minute&(1<<wall.Minute()) == 0:
			wall = onTo(c.minute, wall.Minute(), 60, wall.Truncate(time.Minute), time.Minute)
		case c.second&(1<<wall.Second()) == 0:
			wall = onTo(c.second, wall.Second(), 60, wall, time.Second)
		default:
			return wall, true
		}
	}
	return time.Time{}, false
}

// onTo goes from a number that does not fit to the next one that does, or to the first one after the last.
func onTo(set uint64, number, all int, wall time.Time, unit time.Duration) time.Time {
	next := min(number+bits.TrailingZeros64(set>>number), all)
	return wall.Add(time.Duration(next-number) * unit)
}

// on says whether a day fits. When both the day of the month and the weekday are restricted one of them has to, as in crontab.
func (c *cron) on(wall time.Time) bool {
	day, weekday := c.day&(1<<wall.Day()) != 0, c.weekday&(1<<wall.Weekday()) != 0
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// meant names the weekdays of an expression.
func (c *cron) meant() string {
	var names []string
	for set := c.weekday &^ (1 << 7); set != 0; set &= set - 1 {
		names = append(names, time.Weekday(bits.TrailingZeros64(set)).String())
	}
	return strings.Join(names, ", ")
}
