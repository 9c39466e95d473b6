package blackbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// orkFlow is a workflow of Ork with a name that no other check uses.
type orkFlow struct {
	*client
	name string
	root string // folder of its files
	lead string // top-level lines of the workflow
}

// ork registers a workflow with the given tasks, one line of YAML each, in a new folder.
func (c *client) ork(tasks ...string) *orkFlow {
	c.Helper()
	f := c.orkIn(c.TempDir())
	f.register(tasks...)
	return f
}

func (c *client) orkIn(root string) *orkFlow {
	return &orkFlow{client: c, name: unique("ork"), root: root}
}

// file writes a file into the folder of the workflow.
func (f *orkFlow) file(name string, lines ...string) *orkFlow {
	f.Helper()
	path := filepath.Join(f.root, name)
	require.NoError(f, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(f, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o755))
	return f
}

func (f *orkFlow) yaml(tasks ...string) string {
	return "name: " + f.name + "\n" + f.lead + "tasks:\n  " + strings.Join(tasks, "\n  ") + "\n"
}

// register registers the workflow and requires success.
func (f *orkFlow) register(tasks ...string) obj {
	f.Helper()
	status, answer := f.tryRegister(tasks...)
	require.Equal(f, 200, status, "%v", answer)
	return answer
}

func (f *orkFlow) tryRegister(tasks ...string) (int, obj) {
	f.Helper()
	status, v := f.call("POST", "/workflows", obj{"yaml": f.yaml(tasks...), "root": f.root})
	return status, v.(obj)
}

// orkRun is a run of a workflow.
type orkRun struct {
	*orkFlow
	id string
}

func (f *orkFlow) start(input any) *orkRun {
	f.Helper()
	status, v := f.call("POST", "/workflows/"+f.name+"/runs", obj{"input": input})
	require.Equal(f, 201, status, "%v", v)
	return &orkRun{f, v.(obj)["run_id"].(string)}
}

// read returns the current state of the run.
func (r *orkRun) read() obj {
	r.Helper()
	return r.get("/runs/" + r.id)
}

func (r *orkRun) status() string { return r.read()["run"].(obj)["status"].(string) }

// task returns the first task with a name.
func (r *orkRun) task(name string) obj {
	r.Helper()
	all := r.tasks(name)
	require.NotEmpty(r, all, "there is no task %s", name)
	return all[0]
}

// tasks returns all tasks with a name.
func (r *orkRun) tasks(name string) []obj {
	r.Helper()
	return slices.DeleteFunc(objects(r, r.read()["tasks"]), func(t obj) bool { return t["name"] != name })
}

// statuses returns the states of tasks, by name.
func (r *orkRun) statuses() map[string]string {
	r.Helper()
	all := map[string]string{}
	for _, t := range objects(r, r.read()["tasks"]) {
		all[t["name"].(string)] = t["status"].(string)
	}
	return all
}

// until waits until a condition is true.
func (r *orkRun) until(what string, is func() bool) {
	r.Helper()
	require.Eventually(r, is, deadline, 80*time.Millisecond, what)
}

// ends waits for the run's end and requires its status.
func (r *orkRun) ends(status string) *orkRun {
	r.Helper()
	r.until("the run ends", func() bool { s := r.status(); return s == "success" || s == "failed" || s == "cancelled" })
	require.Equal(r, status, r.status(), "%v", r.read())
	return r
}

// ask posts a body to a route of the run.
func (r *orkRun) ask(path string, body any) (int, obj) {
	r.Helper()
	status, v := r.call("POST", "/runs/"+r.id+path, body)
	answer, _ := v.(obj)
	return status, answer
}

// sh returns a task that runs a shell line. A line without white space would be the name of a
// program.
func sh(name, line string, more ...string) string {
	fields := append([]string{"executor: process", "command: " + quote("true; "+line)}, more...)
	return name + ": {" + strings.Join(fields, ", ") + "}"
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// gives returns a shell line that makes a value the output.
func gives(json string) string { return "echo 'ORK_OUTPUT:" + json + "'" }

// log returns the output of a task; query selects a part.
func (r *orkRun) log(query string) string {
	r.Helper()
	status, header, text := r.send("GET", "/runs/"+r.id+"/tasks/"+query, nil)
	require.Equal(r, 200, status, "%s", text)
	require.Equal(r, "text/plain; charset=utf-8", header.Get("Content-Type"))
	return string(text)
}

// logged waits until is accepts a task's log, because a slow store gets the end of it later.
func (r *orkRun) logged(query string, is func(text string) bool) {
	r.Helper()
	var text string
	r.until("the log is there", func() bool { text = r.log(query); return is(text) })
}

// written returns the text of a file in the folder of a run.
func (r *orkRun) written(name string) string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.root, name))
	require.NoError(r, err)
	return string(text)
}
