//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	listDeep  = 100 // number of pages of 500 before a deep page
	listAfter = 500 * time.Millisecond
)

// measureLists fills the store with many tasks, most of them ended. It measures the time of each
// query of the pages, one query at a time.
func (b *benchRun) measureLists() error {
	if err := b.fillStore(); err != nil {
		return err
	}
	if err := b.serveAPI(b.ctx); err != nil {
		return err
	}
	if err := b.awaitReady(); err != nil {
		return err
	}
	deep, err := b.deepPage("/v1/tasks?limit=500")
	if err != nil {
		return err
	}
	b.result.Extra = map[string]float64{}
	for _, q := range append(listQueries(time.Now()), deep) {
		took, err := b.medianOf(q)
		if err != nil {
			return err
		}
		b.result.Extra[q] = took
	}
	return nil
}

// listQueries returns the queries of the pages when there are many tasks.
func listQueries(now time.Time) []string {
	day, week := now.Add(-24*time.Hour), now.Add(-7*24*time.Hour)
	at := func(t time.Time) string { return url.QueryEscape(t.UTC().Format(time.RFC3339)) }
	list := []string{
		"/v1/overview", "/v1/stats", "/v1/stats?window=7d", "/v1/flows/flow-0/stats?window=7d",
		"/v1/flows?with=summary", "/v1/flows?q=flow-1&sort=name&with=summary",
		"/v1/queues", "/v1/workers", "/v1/tasks/count?group_by=flow", "/v1/tasks/count?group_by=label:region",
		"/v1/tasks?sort=-ended", "/v1/tasks?sort=ended",
	}
	for _, filter := range []string{"", "&flow=flow-0", "&flow=flow-150", "&label=region:north",
		"&label=customer:customer-77", "&label=region:north&flow=flow-0", "&ended_from=" + at(day),
		"&q=refused"} {
		list = append(list, "/v1/tasks/count?group_by=state"+filter)
	}
	for _, filter := range []string{
		"", "state=failed", "state=completed", "state=canceled", "state=running", "flow=flow-0",
		"flow=flow-150", "flow=flow-0&state=failed", "flow=flow-150&state=failed",
		"label=customer:customer-77", "label=region:north",
		"label=customer:customer-77&state=failed", "label=region:north&state=failed", "q=task-019",
		"q=customer-77", "q=refused", "error=" + url.QueryEscape("failed: refused # of kind aa"),
		"waits=approval", "waits=signal", "queued=service-1", "id_prefix=task-0193", "version=1&flow=flow-1", "node=failed&state=failed",
		"created_from=" + at(day), "created_from=" + at(week) + "&created_to=" + at(day),
		"ended_from=" + at(day), "duration_min=5000", "duration_max=100&flow=flow-3",
	} {
		list = append(list, "/v1/tasks?"+filter, "/v1/tasks/count?"+filter)
	}
	return list
}

// deepPage returns the URL of a page far from the first one.
func (b *benchRun) deepPage(first string) (string, error) {
	page := first
	for range listDeep {
		var told struct{ Next string }
		if err := b.getJSON(page, &told); err != nil {
			return "", err
		}
		if told.Next == "" {
			break
		}
		page = first + "&cursor=" + url.QueryEscape(told.Next)
	}
	return page, nil
}

// medianOf returns the median time of a query in milliseconds.
func (b *benchRun) medianOf(path string) (float64, error) {
	took := make([]float64, b.o.rounds)
	for i := range took {
		began := time.Now()
		if err := b.getJSON(path, nil); err != nil {
			return 0, err
		}
		took[i] = float64(time.Since(began).Microseconds()) / 1000
	}
	slices.Sort(took)
	return medianSorted(took), nil
}

func (b *benchRun) getJSON(path string, to any) error {
	req, err := http.NewRequestWithContext(b.ctx, http.MethodGet, b.url+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("GET %s: %d: %.300s", path, resp.StatusCode, answer)
	case to == nil:
		return nil
	}
	return json.Unmarshal(answer, to)
}

// awaitReady waits until the member answers.
func (b *benchRun) awaitReady() (err error) {
	for range 60 {
		if err = b.getJSON("/readyz", nil); err == nil {
			return nil
		}
		time.Sleep(listAfter)
	}
	return err
}

var timesInQuery = regexp.MustCompile(`=\d{4}-[^&]*`)

// shownRoute returns a route without variable times and cursors.
func shownRoute(route string) string {
	shown, _, deep := strings.Cut(route, "&cursor=")
	shown = "`" + strings.TrimSuffix(timesInQuery.ReplaceAllString(shown, "=…"), "?") + "`"
	if deep {
		shown += fmt.Sprintf(", page %d", listDeep+1)
	}
	return shown
}

// listsTable prints the medians of lists in Markdown: a row per route, and a column per measured
// line.
func listsTable(in io.Reader, out io.Writer) error {
	lines, err := readResults(in)
	if err != nil {
		return err
	}
	head, rule, rows := "| route |", "|---|", map[string][]string{}
	for i, r := range lines["lists"] {
		head += fmt.Sprintf(" %s, %d tasks |", r.Store, r.N)
		rule += "--:|"
		for route, took := range r.Extra {
			row := shownRoute(route)
			for len(rows[row]) < i {
				rows[row] = append(rows[row], "–")
			}
			rows[row] = append(rows[row], fmt.Sprintf("%.1f ms", took))
		}
	}
	fmt.Fprintln(out, head+"\n"+rule)
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		for len(rows[row]) < len(lines["lists"]) {
			rows[row] = append(rows[row], "–")
		}
		fmt.Fprintf(out, "| %s | %s |\n", row, strings.Join(rows[row], " | "))
	}
	return nil
}
