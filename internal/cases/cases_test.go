package cases_test

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/internal/cases"
)

const orderFlow = `
start: reserve
on_error: fail
nodes:
  reserve: {service: stock, prep: {input_key: $params.order}, post: {output_key: reservation}, compensate: release}
  approve: {kind: approval, params: {approval_key: $shared.decision}, timeout_ms: 604800000}
  charge: {service: charge, retry: {max_attempts: 3, delay: 1h}, prep: {input_map: {amount: $params.amount}}, post: {output_key: payment}}
  ship: {service: ship}
  refuse: {service: refuse}
  release: {service: release, prep: {input_key: $input.output}}
edges:
- {from: reserve, action: default, to: approve}
- {from: approve, action: approved, to: charge}
- {from: approve, action: rejected, to: refuse}
- {from: charge, action: default, to: ship}
`

// in writes files to a new folder.
func in(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// played returns the results of the cases of the order flow.
func played(t *testing.T, flow, text string, seeds int) []*cases.Result {
	t.Helper()
	dir := in(t, map[string]string{"order.yaml": flow, "order.test.yaml": text})
	f, err := cases.Open(filepath.Join(dir, "order.test.yaml"), "")
	require.NoError(t, err)
	s := cases.Suite{Files: []*cases.File{f}, Seeds: seeds}
	results, _ := s.Play()
	return results
}

const happy = `
name: shipped
params: {order: 7, amount: 12}
mocks:
  reserve: {output: {id: r1}}
  charge: [{error: declined, times: 2, after: 1s}, {expr: "{'paid': input.amount}"}]
  ship: {echo: true}
at: {2d: {approve: approve}}
`

func TestAllExpectationsAreCompared(t *testing.T) {
	for _, r := range played(t, orderFlow, happy+`
expect:
  state: completed
  error: ""
  result_has: {payment: {paid: 12}}
  shared: {reservation: {id: r1}}
  steps: [reserve, approve, charge, ship]
  nodes: {charge: completed, refuse: created}
  calls:
    charge: {times: 3, input: {amount: 12}}
    stock: [{input: 7}]
    ship: 1
    release: {max: 0}
  took: 50h2s
  waits: []
never: [{call: ship, before: charge}, {call: refuse}, {call: charge, more_than: 3}, {done: charge, without: release}]
always: ["called.charge == 3 && ok.charge == 1 && failed.charge == 2", "calls.filter(c, c.node == 'charge').all(c, c.input.amount == params.amount)", "took > 48*3600*1000"]
`, 0) {
		require.True(t, r.Passed(), r.Text(""))
	}
}

func TestDifferencesAreReportedWithPosition(t *testing.T) {
	for name, tt := range map[string]struct{ expects, want string }{
		"state": {"expect: {state: failed}", "11:17: state: expected failed, but the task is completed"},
		"error": {"expect: {state: completed, error: declined}",
			`11:35: error: expected one with "declined", but it is ""`},
		"result": {"expect: {result: {reservation: {id: r2}, payment: {paid: 12}}}",
			`result.reservation.id: expected "r2", got "r1"`},
		"more": {"expect: {result: {reservation: {id: r1}}}",
			`result.payment: not expected, got {"paid":12}`},
		"part": {"expect: {result_has: {nothing: 1}}",
			"result.nothing: expected 1, but it is not there"},
		"shared": {"expect: {shared: {payment: {paid: 13}}}", "shared.payment.paid: expected 13, got 12"},
		"steps":  {"expect: {steps: [reserve, charge, ship]}", "steps: expected reserve, charge, ship"},
		"calls":  {"expect: {calls: {ship: 2}}", "11:24: calls of ship: expected 2, got 1"},
		"input": {"expect: {calls: {charge: {input: {amount: 13}}}}",
			"the input of charge.amount: expected 13, got 12"},
		"took": {"expect: {took: 2d}", "took: expected 2d, but it was 2d2h2s"},
		"node": {"expect: {nodes: {refuse: completed}}",
			"node refuse: expected completed, but it is created"},
		"waits": {"expect: {waits: [approve]}", "waits: expected approve, but it is nothing"},
		"never": {"never: {call: ship, after: charge}",
			"never: ship was called after charge had begun, at 2d2h2s"},
		"never more": {"never: {call: charge, more_than: 2}", "never: charge was called more than 2 times"},
		"always":     {"always: called.ship == 2", "always: called.ship == 2 does not hold"},
		"a late act": {"at: {9d: {signal: {decision: true}}, 2d: {approve: " +
			"approve}}\nexpect: {state: completed}",
			"at 9d: signal decision = true was not done: the task had ended by then, after 2d2h2s"},
		"nobody answers": {"mocks: {ship: {when: input == 1, output: 1}, reserve: {output: {id: " +
			"r1}}, charge: {output: 1}}\nexpect: {state: completed}",
			"the mock has no answer for ship, which is its call 1, with null"},
	} {
		t.Run(name, func(t *testing.T) {
			text := happy
			if strings.HasPrefix(tt.expects, "at:") {
				text = text[:strings.Index(text, "at: ")]
			}
			if strings.HasPrefix(tt.expects, "mocks:") {
				text = text[:strings.Index(text, "mocks:")] + "at: {2d: {approve: approve}}\n"
			}
			r := played(t, orderFlow, text+tt.expects, 0)[0]
			require.False(t, r.Passed())
			require.Contains(t, r.Text(""), strings.TrimPrefix(tt.want, "11:"))
			require.Contains(t, r.Text(""), "the task starts with {\"order\":7,\"amount\":12}")
		})
	}
}

func TestEveryMistakeIsReportedWithPosition(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nexpect: {stat: completed}":                                 "2:10: unknown field of expect: stat: did you mean state?",
		"name: a\nexpect: {state: complete}":                                 "2:17: unknown state: complete: did you mean completed?",
		"name: a\nmocks: {chrage: {output: 1}}\nexpect: {state: failed}":     "2:9: unknown node, service or function: chrage: did you mean charge?",
		"name: a\nmocks: {charge: {}}\nexpect: {state: failed}":              "2:17: the answer says nothing: give it an output, or an error",
		"name: a\nmocks: {charge: 7}\nexpect: {state: failed}":               "2:17: an answer has to be a mapping (key: value), but is a single value",
		"name: a\nmocks: {charge: {output: 1, error: x}}\nexpect: {took: 1":  "invalid YAML",
		"name: a\nat: {2x: cancel}\nexpect: {state: failed}":                 `2:6: at: "2x" is no duration: write it like 250ms`,
		"name: a\nat: {2d: cancle}\nexpect: {state: failed}":                 "2:10: unknown act: cancle: did you mean cancel?",
		"name: a\nexpect: {steps: [reserve, shipp]}":                         "2:27: unknown node: shipp: did you mean ship?",
		"name: a\nexpect: {calls: {charge: -1}}":                             "2:26: the number of calls has to be a whole number, at least 0",
		"name: a\nalways: called.ship =":                                     "2:9: always: character 13",
		"name: a\nnever: {call: ship, before: a, after: charge}":             "2:29: unknown node, service or function: a",
		"name: a\nnever: {done: ship}":                                       "2:8: done needs without",
		"name: a":                                                            "1:1: the case a expects nothing",
		"expect: {state: failed}":                                            "1:1: the case has no name",
		"name: a\nname: b\nexpect: {state: failed}":                          "2:1: the key name is there twice, first in line 1",
		"name: a\nexpect: {state: failed}\n---\nname: a\nexpect: {took: 1s}": `4:7: there are two cases named "a", the first in line 1`,
		"name: a\nfaults: [orders]\nexpect: {state: failed}":                 "2:10: unknown kind of fault: orders: did you mean order?",
		"name: a\nexpect: {calls: {charge: 010}}":                            `2:26: the number of calls: "010" is one number in YAML 1.1`,
		"name: a\nmocks: {charge: {silent: !!bool maybe}}":                   `2:26: silent: "maybe" is no !!bool`,
		"name: !custom a\nexpect: {state: failed}":                           "1:7: the tag !custom has no meaning here",
		"":    "1:1: the file has no cases",
		"- a": "1:1: a case has to be a mapping (key: value), but is a list",
	} {
		t.Run(text, func(t *testing.T) {
			dir := in(t, map[string]string{"order.yaml": orderFlow, "order.test.yaml": text})
			_, err := cases.Open(filepath.Join(dir, "order.test.yaml"), "")
			require.ErrorAs(t, err, new(cases.Mistakes))
			require.ErrorContains(t, err, want)
		})
	}
}

func TestNumbersOfCasesKeepTheirDigits(t *testing.T) {
	dir := in(t, map[string]string{"order.yaml": orderFlow,
		"order.test.yaml": "name: a\nparams: {n: 12345678901234567890123, m: 1e400, t: " +
			"'1e400'}\nexpect: {state: failed}"})
	f, err := cases.Open(filepath.Join(dir, "order.test.yaml"), "")
	require.NoError(t, err)
	require.Equal(t, `{"n":12345678901234567890123,"m":1e400,"t":"1e400"}`, string(f.Cases[0].Params))
}

func TestValuesOfCasesAreReadAsThoseOfDefinitions(t *testing.T) {
	open := func(value string) (*cases.File, error) {
		dir := in(t, map[string]string{"order.yaml": orderFlow,
			"order.test.yaml": "name: a\nparams: {n: " + value + "}\nexpect: {state: failed}"})
		return cases.Open(filepath.Join(dir, "order.test.yaml"), "")
	}
	for _, value := range []string{"0x1F", "0o17", "+3", "-.50", "3.e2", "0xFFFFFFFFFFFFFFFFFF",
		"!!str 012", "!!int '12'", "'012'", "1:30", "2001-01-01", "yes", "True", "~"} {
		want, err := definition.YAMLToJSON([]byte("n: " + value))
		require.NoError(t, err, value)
		f, err := open(value)
		require.NoError(t, err, value)
		require.Equal(t, string(want), string(f.Cases[0].Params), value)
	}
	for _, value := range []string{"012", "0777", "1_000", "0b11", "-012", ".inf", "!!int abc", "!!bool maybe",
		"!!binary aGk=", "!custom x", "!point {x: 1}", "[1, {b: 012}]", "!!seq {a: 1}"} {
		_, err := definition.YAMLToJSON([]byte("n: " + value))
		want := new(definition.Problems)
		require.ErrorAs(t, err, want, value)
		_, err = open(value)
		require.ErrorAs(t, err, new(cases.Mistakes), value)
		require.ErrorContains(t, err, "order.test.yaml:2:", value)
		require.ErrorContains(t, err, (*want)[0].Msg, value)
	}
}

func TestAWaitForAKeyOfItsOwnNameIsAnsweredOnce(t *testing.T) {
	for _, wait := range []string{"pay", "hear"} { // named like its key, and differently
		flow := "start: ok\nresult: pay\nnodes:\n  ok: {kind: approval, params: {approval_key: ok}}\n  " +
			wait + ": {kind: wait_event, params: {signal_key: pay}}\n" +
			"edges: [{from: ok, action: approved, to: " + wait + "}]\n"
		text := "name: both are answered\nwhen_waiting: {ok: approve, pay: {answer: 7}}\nexpect: {state: completed, result: 7}\n"
		for _, r := range played(t, flow, text, 50) {
			require.Empty(t, r.Failures, wait)
		}
	}
}

func TestCasesFindTheirFlow(t *testing.T) {
	dir := in(t, map[string]string{"order.yaml": orderFlow, "a.test.yaml": "flow: order.yaml\nname: a\nexpect: {state: failed}",
		"b.test.yaml": "name: a\nexpect: {state: failed}", "bad.yaml": "start: x", "bad.test.yaml": "name: a\nexpect: {state: failed}"})
	f, err := cases.Open(filepath.Join(dir, "a.test.yaml"), "")
	require.NoError(t, err)
	require.Len(t, f.Cases, 1)
	elsewhere := in(t, map[string]string{"a.test.yaml": "flow: " + filepath.ToSlash(
		filepath.Join(dir, "order.yaml")) + "\nname: a\nexpect: {state: failed}"})
	f, err = cases.Open(filepath.Join(elsewhere, "a.test.yaml"), "")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "order.yaml"), filepath.FromSlash(f.Flow), "an absolute path stays as it is")
	_, err = cases.Open(filepath.Join(dir, "b.test.yaml"), "")
	require.ErrorContains(t, err, "there is no flow "+filepath.Join(dir, "b.yaml")+" beside it: name it in the file with flow: PATH")
	_, err = cases.Open(filepath.Join(dir, "bad.test.yaml"), "")
	require.ErrorContains(t, err, "bad.yaml:1:")
	beside, err := cases.Beside(filepath.Join(dir, "order.yaml"))
	require.ErrorContains(t, err, "has no cases beside it", beside)
	all, err := cases.In(dir)
	require.NoError(t, err)
	require.Len(t, all, 3)
}

// example copies the files of the example with a change.
func example(t *testing.T, old, new string) (dir string) {
	t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("../../examples/ordertest", name))
		require.NoError(t, err)
		return string(b)
	}
	flow := read("order.yaml")
	require.Contains(t, flow, old)
	return in(t, map[string]string{"order.yaml": strings.Replace(flow, old, new, 1), "order.test.yaml": read("order.test.yaml")})
}

func TestTheExampleCasesFindPlantedMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		old, new, found string
		seeds           bool // undisturbed runs do not find it
	}{
		"nothing": {"", "", "", true},
		"a compensation that is missing, because it stands at the wrong node": {"    compensate: refund\n  ship:\n",
			"  ship:\n    compensate: refund\n",
			"never: charge was done, the task is failed, and refund was not called", true},
		"a race": {"depends_on: [reserve, approve]\n    when: {if: {approve: true}}",
			"depends_on: [approve]\n    when: {if: {approve: true}}",
			"never: ship was called before reserve had completed", true},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := cases.Open(filepath.Join(example(t, tt.old, tt.new), "order.test.yaml"), "")
			require.NoError(t, err)
			if tt.seeds {
				f.Cases = f.Cases[:1] // the case without faults
			}
			s := cases.Suite{Files: []*cases.File{f}, Seeds: 1000}
			results, _ := s.Play()
			if tt.found == "" {
				require.True(t, results[0].Passed(), "%v", results[0].Failures)
				require.Equal(t, 1001, results[0].Runs)
				return
			}
			require.False(t, results[0].Passed())
			require.NotZero(t, results[0].Seed, results[0].Text(""))
			require.Contains(t, results[0].Text(""), tt.found)
			require.Len(t, results[0].Story.Struck, 1, "it is shrunk to the one fault that it takes")
			again := cases.Suite{Files: []*cases.File{f}, Schedule: results[0].Story.Schedule()}
			repeated, _ := again.Play()
			require.Equal(t, results[0].Failures[0].ID, repeated[0].Failures[0].ID)
			written, problems := cases.ReadSchedule([]byte(cases.Written(results[0].Story.Schedule())))
			require.Empty(t, problems)
			require.Equal(t, results[0].Story.Schedule(), written)
		})
	}
}

func TestAllCasesOfTheExamplePassUnderManySeeds(t *testing.T) {
	f, err := cases.Open("../../examples/ordertest/order.test.yaml", "")
	require.NoError(t, err)
	s := cases.Suite{Files: []*cases.File{f}, Seeds: 300}
	results, covered := s.Play()
	for _, r := range results {
		require.True(t, r.Passed(), "%s: %s", r.Case.Name, r.Text(""))
	}
	require.InDelta(t, 100, covered[0].Percent(), 0)
}

func TestResultsAreWrittenForBuildServers(t *testing.T) {
	results := played(t, orderFlow, happy+"expect: {state: failed}\n---"+strings.Replace(happy,
		"shipped", "shipped, too", 1)+"expect: {state: completed}", 0)
	var b strings.Builder
	require.NoError(t, cases.JUnit(&b, results))
	var read struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal([]byte(b.String()), &read))
	require.Equal(t, 2, read.Tests)
	require.Equal(t, 1, read.Failures)
	require.Equal(t, "state: expected failed, but the task is completed", read.Suites[0].Cases[0].Failure.Message)
	require.Nil(t, read.Suites[0].Cases[1].Failure)
	require.False(t, results[0].Record().Passed)
}

// written returns the YAML block of a page that contains a text.
func written(t *testing.T, page, with string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		if block, _, _ = strings.Cut(block, "```"); strings.Contains(block, with) {
			return block
		}
	}
	require.Fail(t, "no such block", "%s: %s", page, with)
	return ""
}

func TestTheCasesThatPagesShowPass(t *testing.T) {
	dir := example(t, "", "")
	page := written(t, "../../docs/how-to/test-flows.md", "name: a card that is declined twice")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "order.test.yaml"), []byte(page), 0o644))
	f, err := cases.Open(filepath.Join(dir, "order.test.yaml"), "")
	require.NoError(t, err)
	s := cases.Suite{Files: []*cases.File{f}, Seeds: 300}
	results, _ := s.Play()
	require.True(t, results[0].Passed(), results[0].Text(""))
}

func TestTheFirstFailingSeedIsReported(t *testing.T) {
	f, err := cases.Open(filepath.Join(example(t, "depends_on: [reserve, approve]\n    when",
		"depends_on: [approve]\n    when"), "order.test.yaml"), "")
	require.NoError(t, err)
	f.Cases = f.Cases[:1]
	alone := cases.Suite{Files: []*cases.File{f}, Seeds: 1000, Workers: 1}
	results, _ := alone.Play()
	first := results[0]
	for range 5 {
		many := cases.Suite{Files: []*cases.File{f}, Seeds: 1000, Workers: 8}
		results, _ := many.Play()
		require.Equal(t, first.Seed, results[0].Seed)
		require.Equal(t, first.Text(""), results[0].Text(""))
		again := cases.Suite{Files: []*cases.File{f}, Seed: first.Seed}
		results, _ = again.Play()
		require.Equal(t, first.Text(""), results[0].Text(""))
	}
}

func TestSignalRacesWithTimeoutOnlyIfTheCaseAllowsIt(t *testing.T) {
	approved := strings.Replace(strings.Replace(happy, "2d", "6d", 1), "mocks:",
		"mocks:\n  release: {echo: true}", 1) + "expect: {state: completed}\n"
	calm := played(t, orderFlow, approved, 1000)[0]
	require.True(t, calm.Passed(), calm.Text(""))
	r := played(t, orderFlow, approved+"faults: timeouts\n", 1000)[0]
	require.False(t, r.Passed())
	require.Contains(t, r.Text(""), `- {late: "at 6d: approve approve", by: 1d}`, "the least lateness that does")
	require.Contains(t, r.Text(""), "state: expected completed, but the task is failed")
}
