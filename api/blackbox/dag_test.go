package blackbox

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dagChecks holds the checks of Ork's list about dependencies, units, inputs, canceling and
// pausing. They are flows in dag mode with Ork's profile, over /v1.
var dagChecks = []check{
	{"O05 a join starts after both", joinWaits},
	{"O06 a failure skips what depends on it", failureSkips},
	{"O07 a failure leaves others alone", failureLeavesOthers},
	{"O08 a clean-up runs after a failure", cleanUpAfterFailure},
	{"O09 a clean-up runs after a success", cleanUpAfterSuccess},
	{"O10 what depends on a clean-up runs", afterCleanUp},
	{"O19 units are counted", countedUnits},
	{"O20 their number may come from an output", countFromOutput},
	{"O21 a list becomes units, and their outputs a list", itemsInOrder},
	{"O22 no more units run than allowed", boundedUnits},
	{"O23 an empty list is a success", noItems},
	{"O24 what is no list fails its step", itemsAreNoList},
	{"O25 one failed unit fails its step, not the others", oneUnitFails},
	{"O26 an input is merged", mergedInput},
	{"O27 an input is bound field by field", boundInput},
	{"O33 a canceled script ends at once", cancelScript},
	{"O35 a paused task starts nothing", pauseAndResume},
}

func TestDagSQLite(t *testing.T)   { t.Parallel(); runChecks(t, sqliteStore, dagChecks) }
func TestDagPostgres(t *testing.T) { t.Parallel(); runChecks(t, postgresStore, dagChecks) }
func TestDagCluster(t *testing.T)  { t.Parallel(); runChecks(t, clusterStore, dagChecks) }

const inQueues = `
profile: ork
defaults: {route: queue}
nodes:
`

func joinWaits(c *client) {
	d := c.dag(inQueues+`
  a: {service: "@a"}
  b: {service: "@b"}
  join: {service: "@join", depends_on: [a, b]}`, obj{})
	a, _ := d.take("a")
	b, _ := d.take("b")
	d.ok(a, 1)
	d.steps("a", "completed", "b", "started", "join", "created")
	d.idle("join")
	d.ok(b, 2)
	d.does("join", obj{"a": 1, "b": 2}, 3)
	require.Equal(c, obj{"join": 3.0}, d.ended("completed")["result"])
}

func failureSkips(c *client) {
	d := c.dag(inQueues+`
  a: {service: "@a"}
  b: {service: "@b", depends_on: [a]}
  c: {service: "@c", depends_on: [b]}`, obj{})
	d.fails("a", "exit status 3")
	require.Contains(c, d.ended("failed")["error"], "exit status 3")
	d.steps("a", "failed", "b", "skipped", "c", "skipped")
	d.idle("b", "c")
	d.neverRan("b")
	d.neverRan("c")
}

func failureLeavesOthers(c *client) {
	d := c.dag(inQueues+`
  a: {service: "@a"}
  x: {service: "@x"}`, obj{})
	d.fails("a", "boom")
	require.Equal(c, "running", d.task()["state"])
	d.does("x", obj{}, 1)
	d.ended("failed")
	d.steps("a", "failed", "x", "completed")
}

// cleanedUp is a flow with a step that runs regardless of the outcome of a.
const cleanedUp = inQueues + `
  a: {service: "@a"}
  b: {service: "@b", depends_on: [a]}
  n: {service: "@n", depends_on: [a, b], run_on: always}
  d: {service: "@d", depends_on: [n]}`

func cleanUpAfterFailure(c *client) {
	d := c.dag(cleanedUp, obj{})
	d.fails("a", "boom")
	d.does("n", obj{"a": nil, "b": nil}, "clean")
	d.does("d", obj{"n": "clean"}, 1)
	d.ended("failed")
	d.steps("a", "failed", "b", "skipped", "n", "completed")
}

func cleanUpAfterSuccess(c *client) {
	d := c.dag(inQueues+`
  a: {service: "@a"}
  n: {service: "@n", depends_on: [a], run_on: always}`, obj{})
	d.does("a", obj{}, 5)
	d.does("n", obj{"a": 5}, 6)
	d.ended("completed")
	d.idle("n")
	require.Len(c, d.units("n"), 1)
}

func afterCleanUp(c *client) {
	d := c.dag(cleanedUp, obj{})
	d.fails("a", "boom")
	d.does("n", obj{"a": nil, "b": nil}, "clean")
	d.steps("d", "started")
	d.does("d", obj{"n": "clean"}, 1)
	d.ended("failed")
	d.steps("d", "completed")
}

func countedUnits(c *client) {
	d := c.dag(`
profile: ork
nodes:
  p:
    each: {count: 4}
    script: {code: 'printf "[%d,%d]" $TROUPE_UNIT $TROUPE_UNITS', output_mode: json}`, obj{})
	t := d.ended("completed")
	require.Equal(c, obj{"p": fromJSON(c, `[[0,4],[1,4],[2,4],[3,4]]`)}, t["result"])
	require.Equal(c, []any{0.0, 1.0, 2.0, 3.0}, values(d.units("p"), "unit"))
}

func countFromOutput(c *client) {
	d := c.dag(inQueues+`
  discover: {service: "@discover"}
  process: {service: "@process", depends_on: [discover], each: {count: discover.count}}`, obj{})
	job, _ := d.take("discover")
	d.steps("process", "created")
	require.Empty(c, d.units("process"))
	d.ok(job, obj{"count": 10})
	require.Len(c, d.units("process"), 10)
	for range 10 {
		d.does("process", obj{"discover": obj{"count": 10}}, 1)
	}
	d.ended("completed")
}

const aggregated = inQueues + `
  discover: {service: "@discover"}
  each: {service: "@each", depends_on: [discover], each: {items: discover.files}}
  aggregate: {service: "@aggregate", depends_on: [each]}`

func itemsInOrder(c *client) {
	d := c.dag(aggregated, obj{"run": true})
	found := obj{"files": []string{"x", "y", "z"}}
	d.does("discover", obj{"run": true}, found)
	jobs := map[string]string{}
	for range 3 {
		job, input := d.take("each")
		item := input.(obj)["item"].(string)
		require.Equal(c, fromJSON(c, jsonText(c, obj{"run": true, "discover": found, "item": item})), input)
		jobs[item] = job
	}
	d.ok(jobs["z"], "Z")
	d.ok(jobs["y"], "Y")
	d.steps("aggregate", "created")
	d.ok(jobs["x"], "X")
	d.does("aggregate", obj{"run": true, "each": []string{"X", "Y", "Z"}}, nil)
	d.ended("completed")
}

func boundedUnits(c *client) {
	d := c.dag(inQueues+`
  each: {service: "@each", each: {items: $run.list, concurrency: 4}}`, obj{"list": []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}})
	inFlight := func() (n int) {
		for _, u := range d.units("each") {
			if u["state"] == "dispatched" || u["state"] == "running" {
				n++
			}
		}
		return n
	}
	var jobs []string
	for done := 0; done < 12; done++ {
		for len(jobs) < min(4, 12-done) {
			job, _ := d.take("each")
			jobs = append(jobs, job)
		}
		d.idle("each")
		require.Equal(c, len(jobs), inFlight())
		d.ok(jobs[0], done)
		jobs = jobs[1:]
	}
	d.ended("completed")
}

func noItems(c *client) {
	d := c.dag(aggregated, obj{})
	d.does("discover", obj{}, obj{"files": []string{}})
	d.does("aggregate", obj{"each": []string{}}, nil)
	d.ended("completed")
	d.steps("each", "completed")
	d.neverRan("each")
}

func itemsAreNoList(c *client) {
	d := c.dag(aggregated, obj{})
	d.does("discover", obj{}, obj{"files": 3})
	t := d.ended("failed")
	require.Contains(c, t["error"], "must be an array, are a number: 3")
	require.Equal(c, "preprocessing_error", d.step("each")["reason"])
	require.Empty(c, d.units("each"))
	d.steps("each", "failed", "aggregate", "skipped")
	d.neverRan("aggregate")
}

func oneUnitFails(c *client) {
	d := c.dag(aggregated, obj{})
	d.does("discover", obj{}, obj{"files": []string{"x", "y", "z"}})
	for range 3 {
		if job, input := d.take("each"); input.(obj)["item"] == "y" {
			d.fail(job, "boom")
		} else {
			d.ok(job, 1)
		}
	}
	d.ended("failed")
	d.steps("each", "failed", "aggregate", "skipped")
	require.Equal(c, []any{"completed", "failed", "completed"}, values(d.units("each"), "state"))
}

func mergedInput(c *client) {
	d := c.dag(inQueues+`
  a: {service: "@a"}
  b: {service: "@b", depends_on: [a], input: {x: 1}}`, obj{"x": 2})
	d.does("a", obj{"x": 2}, obj{"y": 3})
	d.does("b", obj{"x": 2, "a": obj{"y": 3}}, nil)
	d.ended("completed")
}

func boundInput(c *client) {
	definition := inQueues + `
  a: {service: "@a"}
  b: {service: "@b", depends_on: [a], inputs: {times: {const: 3}, name: {ref: tasks.a.output.user.name}}}`
	d := c.dag(definition, obj{"ignored": true})
	d.does("a", obj{"ignored": true}, obj{"user": obj{"name": "Ada"}})
	d.does("b", obj{"times": 3, "name": "Ada"}, nil)
	d.ended("completed")

	d = c.dag(definition, obj{})
	d.does("a", obj{}, obj{"user": obj{}})
	require.Contains(c, d.ended("failed")["error"], "inputs.name: there is no tasks.a.output.user.name")
	d.steps("b", "failed")
}

// cancelScript cancels a script that would run for an hour.
func cancelScript(c *client) {
	if runtime.GOOS == "windows" {
		return // the script below needs a Unix shell
	}
	pipe := makePipe(c)
	d := c.dag(fmt.Sprintf(`
profile: ork
nodes:
  sleep: {script: {code: 'exec 3>%s; echo begun >&3; sleep 3600 & wait', timeout_ms: 7200000}}
  next: {service: never, depends_on: [sleep]}`, pipe.path), obj{})
	pipe.begun()
	d.post(d.path("/cancel"), obj{"force": true})
	d.ended("canceled")
	pipe.letGo()
	d.neverRan("next")
}

// pipe is a named pipe that a script and all its children hold open. Its end shows that none of
// them runs any more. A process table is not reliable for that, because a killed process stays in
// it until it is reaped.
type pipe struct {
	*client
	path    string
	reading *os.File
	holding *os.File // both ends, so that opening waits for no writer
}

func makePipe(c *client) *pipe {
	p := &pipe{client: c, path: filepath.Join(c.TempDir(), "pipe")}
	require.NoError(c, exec.Command("mkfifo", p.path).Run())
	var err error
	p.holding, err = os.OpenFile(p.path, os.O_RDWR, 0)
	require.NoError(c, err)
	p.reading, err = os.Open(p.path)
	require.NoError(c, err)
	c.Cleanup(func() { p.reading.Close(); p.holding.Close() })
	return p
}

// begun waits until the script has written "begun".
func (p *pipe) begun() {
	p.Helper()
	require.NoError(p, p.reading.SetReadDeadline(time.Now().Add(deadline)))
	text := make([]byte, len("begun\n"))
	_, err := io.ReadFull(p.reading, text)
	require.NoError(p, err)
	require.Equal(p, "begun\n", string(text))
	require.NoError(p, p.holding.Close())
}

// letGo waits until no process holds the pipe.
func (p *pipe) letGo() {
	p.Helper()
	require.NoError(p, p.reading.SetReadDeadline(time.Now().Add(deadline)))
	_, err := p.reading.Read(make([]byte, 1))
	require.ErrorIs(p, err, io.EOF)
}

func pauseAndResume(c *client) {
	d := c.dag(inQueues+`
  a: {service: "@a"}
  b: {service: "@b", depends_on: [a]}`, obj{})
	job, _ := d.take("a")
	require.Equal(c, true, d.post(d.path("/pause"), nil)["paused"])
	d.ok(job, 1)
	d.steps("a", "completed", "b", "created")
	d.idle("b")
	require.Equal(c, false, d.post(d.path("/resume"), nil)["paused"])
	status, answer := d.call("POST", d.path("/resume"), nil)
	require.Equal(c, 409, status, "%v", answer)
	require.Equal(c, "conflict", answer.(obj)["code"])
	d.does("b", obj{"a": 1}, 2)
	d.ended("completed")
}
