package blackbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/examples/flows"
)

// examples loads and runs the example flows like the dialect's loader: definitions as JSON, signals
// after the start in any order.
func examples(shared *client) {
	c := newClient(shared.T, startServer(shared.T, shared.kind))
	c.push(demoServices)
	c.pull("async-transform", "email-service")
	all := inTheDialect(c)
	loaded := map[string]string{}
	for _, want := range all {
		if loaded[want.File] == "" {
			loaded[want.File] = c.load(want.File)
		}
	}
	c.Run("all", func(t *testing.T) {
		for i, want := range all {
			t.Run(fmt.Sprint(want.File, " ", i), func(t *testing.T) {
				t.Parallel()
				newClient(t, c.server).meets(loaded[want.File], want)
			})
		}
	})
	c.judge(all)
}

// inTheDialect returns the expectations that the dialect can express. It has no dags, no undoing
// and no results.
func inTheDialect(c *client) []flows.Expectation {
	all, err := flows.Expectations()
	require.NoError(c, err)
	all = slices.DeleteFunc(all, func(e flows.Expectation) bool { return e.Input != nil || e.Closing != nil || e.Shared == nil })
	require.NotEmpty(c, all)
	return all
}

func (c *client) meets(flow string, want flows.Expectation) {
	c.Helper()
	task := c.task(flow, orEmpty(want.Params))
	began := time.Now()
	for _, s := range want.Signals {
		time.Sleep(time.Until(began.Add(time.Duration(s.AfterMS) * time.Millisecond)))
		c.signal(task, s.Key, s.Value)
	}
	require.JSONEq(c, string(want.Shared), c.ends(task, want.State)["shared_json"].(string))
}

func (c *client) load(file string) string {
	c.Helper()
	text, err := flows.Files.ReadFile(file)
	require.NoError(c, err)
	definition, err := definition.YAMLToJSON(text)
	require.NoError(c, err)
	id := c.post("/flows", obj{"Name": file})["id"].(string)
	c.version(id, 1, string(definition), "published")
	return id
}

func orEmpty(params json.RawMessage) string {
	if len(params) == 0 {
		return "{}"
	}
	return string(params)
}

// judge checks the outcome like a user of the loader: by name and status in the list of tasks.
func (c *client) judge(all []flows.Expectation) {
	c.Helper()
	want, got := []string{}, []string{}
	for _, e := range all {
		want = append(want, fmt.Sprint(e.File, " ", e.State))
	}
	for _, t := range objects(c, c.get("/tasks?page_size=100")["data"]) {
		got = append(got, fmt.Sprint(t["flow_name"], " ", t["status"]))
	}
	require.ElementsMatch(c, want, got)
}
