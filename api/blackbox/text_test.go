package blackbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const noText = "a\x00b"

// noTexts returns requests with a name that no store can store or find, and the expected statuses.
func noTexts(flow string) []struct {
	path string
	body obj
	want int
} {
	worker := func(field string, value any) obj {
		w := obj{"id": "w", "url": "queue", "type": "async", "services": []string{"s"}}
		w[field] = value
		return w
	}
	poll := func(field string, value any) obj {
		p := obj{"worker_id": "w", "services": []string{"s"}}
		p[field] = value
		return p
	}
	version := func(flow, status, service string) obj {
		return obj{"FlowID": flow, "DefinitionJSON": obj{"start": "a", "nodes": obj{"a": obj{"service": service}}}, "Status": status}
	}
	list := []string{"x", noText}
	return []struct {
		path string
		body obj
		want int
	}{
		{"/flows", obj{"Name": noText}, 400},
		{"/flows", obj{"Name": "x", "Description": noText}, 400},
		{"/flows/version", version(noText, "published", "s"), 404},
		{"/flows/version", version(flow, noText, "s"), 400},
		{"/flows/version", version(flow, "published", noText), 400},
		{"/tasks", obj{"FlowID": noText}, 404},
		{"/tasks", obj{"FlowVersionID": noText}, 404},
		{"/../v1/tasks", obj{"flow": noText}, 404},
		{"/workers/register", worker("id", noText), 400},
		{"/workers/register", worker("url", noText), 400},
		{"/workers/register", worker("type", noText), 400},
		{"/workers/register", worker("services", list), 400},
		{"/workers/register", worker("labels", list), 400},
		{"/workers/heartbeat", obj{"id": noText}, 404},
		{"/workers/deregister", obj{"id": noText}, 404},
		{"/queue/poll", poll("worker_id", noText), 400},
		{"/queue/poll", poll("services", list), 400},
		{"/queue/poll", poll("labels", list), 400},
		{"/queue/poll", poll("flow", noText), 404},
	}
}

// TestInvalidTextIsRefusedBeforeTheStore checks that stores never see invalid text, because they
// would react differently.
func TestInvalidTextIsRefusedBeforeTheStore(t *testing.T) {
	t.Parallel()
	for _, kind := range []storeKind{sqliteStore, postgresStore} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, startServer(t, kind))
			flow, _ := c.flow(waitForever)
			for _, tt := range noTexts(flow) {
				status, v := c.call("POST", tt.path, tt.body)
				assert.Equal(t, tt.want, status, "%s %v: %v", tt.path, tt.body, v)
				if status == 400 {
					assert.Contains(t, fmt.Sprint(v), "U+0000")
				}
			}
			definition := `{"start":"a","nodes":{"a":{"service":"s"}},"NAME":"\u0000"}`
			for _, name := range []string{"name", "description"} {
				status, v := c.call("PUT", "/../v1/flows/"+unique("x"), strings.ReplaceAll(definition, "NAME", name))
				require.Equal(t, 400, status, "%v", v)
				require.Contains(t, fmt.Sprint(v), "U+0000")
			}
			task := c.start(`{"start":"p","nodes":{"p":{"kind":"parallel","exec_type":"queue"}}}`, obj{"services": []string{"s", noText}})
			c.ends(task, "failed")
			for line := range strings.Lines(c.said.String()) {
				require.Contains(t, line, "worker registration rejected", "nothing else is complained about")
			}
		})
	}
}
