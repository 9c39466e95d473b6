package attack

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// victim is a task that an attacker has touched.
type victim struct {
	id, attack string
	flow       string // used for lists; "" if it is not listed
	version    string
}

// aftermath checks the state after an attack. Requests without an answer are retried, for a bounded
// time.
type aftermath struct {
	*member
	ctx   context.Context
	holes []string
	slow  time.Duration // duration of the slowest cancel
}

func (m *member) aftermath(ctx context.Context) (*aftermath, context.CancelFunc) {
	ctx, cancel := m.within(ctx, 3*patience) // for all victims of all attacks
	return &aftermath{member: m, ctx: ctx}, cancel
}

func (f *aftermath) hole(format string, args ...any) {
	f.holes = append(f.holes, fmt.Sprintf(format, args...))
}

// get repeats a read until it is answered.
func (f *aftermath) get(path string) answer {
	a := f.insist(f.ctx, "GET", path, nil)
	if !a.ok() {
		f.hole("%v", a)
	}
	return a
}

// looks are the ways to read a task.
var looks = []string{"/v1/tasks/%s", "/v1/tasks/%s/waiting", "/v1/tasks/%s/events?limit=3", "/v1/tasks/%s/runs?limit=3",
	"/v1/tasks/%s/steps?limit=3", "/api/tasks/get?id=%s"}

// enough is the number of similar victims that are checked.
const enough = 2

// look reads the victims, alone and in lists.
func (f *aftermath) look(victims []victim) {
	for _, v := range victims[:min(enough, len(victims))] {
		for _, look := range looks {
			f.get(fmt.Sprintf(look, v.id))
		}
	}
	byFlow := map[string][]victim{}
	for _, v := range victims {
		if v.flow != "" {
			byFlow[v.flow] = append(byFlow[v.flow], v)
		}
	}
	for flow, of := range byFlow {
		f.listed(of, func() []string { return f.list(flow) })
		f.listed(of, func() []string { return f.listOfGraph(of[0].version) })
	}
	f.get("/v1/tasks?limit=50")
	f.get("/api/tasks?page_size=50")
}

// walks is how often a list is read for missing victims. The list of the graph API is ordered by
// update, so a running task may move to its front while its pages are read.
const walks = 5

func (f *aftermath) listed(victims []victim, list func() []string) {
	missing := slices.Clone(victims)
	for n := 0; n < walks && len(missing) > 0; n++ {
		ids := list()
		missing = slices.DeleteFunc(missing, func(v victim) bool { return slices.Contains(ids, v.id) })
	}
	for _, v := range missing {
		f.hole("task %s of %s is in no list", v.id, v.attack)
	}
}

func (f *aftermath) list(flow string) (ids []string) {
	for next := ""; f.ctx.Err() == nil; {
		var page wire.Page[wire.TaskSummary]
		a := f.get("/v1/tasks?limit=100&flow=" + url.QueryEscape(flow) + "&cursor=" + url.QueryEscape(next))
		if err := a.into(&page); err != nil {
			f.hole("%v: %v", a, err)
			return ids
		}
		for _, t := range page.Items {
			ids = append(ids, t.ID)
		}
		if next = page.Next; next == "" {
			return ids
		}
	}
	return ids
}

func (f *aftermath) listOfGraph(version string) (ids []string) {
	for number := 1; f.ctx.Err() == nil; number++ {
		var page struct{ Data []struct{ ID string } }
		a := f.get(fmt.Sprintf("/api/tasks?page_size=3&page=%d&flow_version_id=%s", number, url.QueryEscape(version)))
		if err := a.into(&page); err != nil {
			f.hole("%.300v: %v", a, err)
			return ids
		}
		for _, t := range page.Data {
			ids = append(ids, t.ID)
		}
		if len(page.Data) == 0 {
			return ids
		}
	}
	return ids
}

// cancel cancels the victims.
func (f *aftermath) cancel(victims []victim) {
	for _, v := range victims {
		began := time.Now()
		a := f.insist(f.ctx, "POST", "/v1/tasks/"+v.id+"/cancel", nil)
		f.slow = max(f.slow, time.Since(began))
		if !a.ok() {
			f.hole("%s cannot be canceled: %v", v.attack, a)
		}
	}
	for _, v := range victims {
		f.over(v)
	}
}

func (f *aftermath) over(v victim) {
	for f.ctx.Err() == nil {
		var row wire.TaskSummary
		a := f.get("/v1/tasks/" + v.id + "?wait_ms=5000")
		if !a.ok() {
			return // reported already
		}
		if a.size > int64(len(a.body)) { // too large to be read here
			return
		}
		if err := a.into(&row); err != nil {
			f.hole("%.300v: %v", a, err)
			return
		}
		if !row.EndedAt.IsZero() {
			return
		}
	}
	f.hole("task %s of %s does not end when it is canceled", v.id, v.attack)
}
