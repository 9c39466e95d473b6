package troupetest

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/define"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/cases"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Test tests a flow. Wrong use of its methods fails the test.
type Test struct {
	t     testing.TB
	names *cases.Names
	mocks map[string]*cases.Mock
	play  rehearse.Play
	may   []string
}

// New returns a Test of a definition in YAML or JSON.
func New(t testing.TB, definition string) *Test {
	t.Helper()
	plan, problems, err := cases.Compile([]byte(definition), "")
	return newTest(t, plan, problems, err)
}

// Load returns a Test of the definition in a file. Embedded flows are looked up by name in the
// folder of the file.
func Load(t testing.TB, path string) *Test {
	t.Helper()
	plan, problems, err := cases.Load(path)
	return newTest(t, plan, problems, err)
}

// Built returns a Test of a definition built in Go with package define.
func Built(t testing.TB, b *define.Builder) *Test {
	t.Helper()
	text, err := b.JSON()
	if err != nil {
		t.Fatalf("troupetest: %v", err)
	}
	return New(t, string(text))
}

func newTest(t testing.TB, plan *flow.Plan, problems definition.Problems, err error) *Test {
	t.Helper()
	switch {
	case err != nil:
		t.Fatalf("troupetest: %v", err)
	case plan == nil:
		t.Fatalf("troupetest: %v", problems)
	}
	f := &Test{t: t, names: cases.NamesOf(plan), mocks: map[string]*cases.Mock{}}
	f.play = rehearse.Play{Plan: plan, Kinds: rehearse.Harmless, Answers: func() rehearse.Answerer { return cases.NewCast(f.mocks).Answer }}
	return f
}

// Mock sets the answers of a node, a service or a function.
func (f *Test) Mock(name string, answer Answer) *Test {
	f.t.Helper()
	f.checkName(name)
	f.requireNoError(answer.err)
	f.mocks[name] = answer.toMock()
	return f
}

// checkName fails the test if the flow has no node, service or function with this name.
func (f *Test) checkName(name string) {
	f.t.Helper()
	if err := f.names.Check(name); err != nil {
		f.t.Fatalf("troupetest: %v", err)
	}
}

func (f *Test) requireNoError(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("troupetest: %v", err)
	}
}

// Until stops the task at a time after its start, such as 2d, whatever its state.
func (f *Test) Until(span string) *Test {
	f.t.Helper()
	d, err := rehearse.ParseSpan(span)
	f.requireNoError(err)
	f.play.Until = d
	return f
}

// Faults sets the faults that seeds may draw: order, repeat and crash (the default), timeouts and
// errors.
func (f *Test) Faults(words ...string) *Test {
	f.t.Helper()
	f.play.Kinds = rehearse.Kinds{}
	for _, word := range words {
		if !f.play.Kinds.Set(word) {
			f.t.Fatalf("troupetest: unknown kind of fault: %s: there are %v", word, rehearse.Words)
		}
	}
	return f
}

// MayFail restricts the calls that fail under seeds to these nodes, services or functions.
func (f *Test) MayFail(names ...string) *Test {
	f.t.Helper()
	for _, name := range names {
		f.checkName(name)
	}
	f.may = append(f.may, names...)
	f.play.Kinds.Errors = true
	f.play.MayFail = func(c *rehearse.Call) bool {
		for _, name := range f.may {
			if cases.Matches(c, name) {
				return true
			}
		}
		return false
	}
	return f
}

// preparePlay returns the rehearsal with its params.
func (f *Test) preparePlay(params any) *rehearse.Play {
	f.t.Helper()
	p := f.play
	if params != nil {
		b, err := json.Marshal(params)
		f.requireNoError(err)
		p.Params = b
	}
	return &p
}

// Run runs a task without faults. If the test fails, the events are logged.
func (f *Test) Run(params any) *Result {
	f.t.Helper()
	r := resultOf(rehearse.Run(f.preparePlay(params)))
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Logf("what happened:\n%s", r.Text())
		}
	})
	if r.story.Err != nil {
		f.t.Fatalf("troupetest: %v", r.story.Err)
	}
	for _, d := range r.story.Done {
		if d.Err != nil {
			f.t.Errorf("troupetest: %s was in vain: %v", d.ID, d.Err)
		}
	}
	return r
}

// Seeds runs a task without faults and then under the faults of n seeds. check has to return nil
// each time. The first story in which it returns an error is reduced to the smallest one and fails
// the test.
func (f *Test) Seeds(n int, params any, check func(*Result) error) {
	f.t.Helper()
	p := f.preparePlay(params)
	fails := func(s *rehearse.Story) error {
		if s.Err != nil {
			return s.Err
		}
		return check(resultOf(s))
	}
	calm := rehearse.Run(p)
	if fails(calm) != nil {
		f.t.Fatalf("undisturbed: %v\nwhat happened:\n%s", fails(calm), resultOf(calm).Text())
	}
	p.Lasts = calm.Took
	first, last := f.seedRange(n)
	for seed := first; seed <= last; seed++ {
		s := rehearse.Seed(p, seed)
		if fails(s) == nil {
			continue
		}
		small := rehearse.Shrink(p, s, func(s *rehearse.Story) bool { return fails(s) != nil })
		f.t.Fatalf("seed %d: %v\nof its %d faults this takes %d (again: TROUPETEST_SEED=%d):\n%s\nwhat happened:\n%s",
			seed, fails(small), len(s.Struck), len(small.Struck), seed, cases.Written(small.Schedule()), resultOf(small).Text())
	}
}

// seedRange returns the first and last seed to run.
func (f *Test) seedRange(n int) (first, last uint64) {
	f.t.Helper()
	if only := os.Getenv("TROUPETEST_SEED"); only != "" {
		seed, err := strconv.ParseUint(only, 10, 64)
		if err != nil {
			f.t.Fatalf("troupetest: TROUPETEST_SEED=%s is no number", only)
		}
		return seed, seed
	}
	return 1, uint64(n)
}

// File runs the cases of a file, each as a subtest, without faults and under n seeds.
func File(t *testing.T, path string, n int) {
	t.Helper()
	file, err := cases.Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			one := *file
			one.Cases = []*cases.Case{c}
			suite := cases.Suite{Files: []*cases.File{&one}, Seeds: n, Workers: 1}
			results, _ := suite.Play()
			if r := results[0]; !r.Passed() {
				t.Fatal(fmt.Sprintln() + r.Text("  "))
			}
		})
	}
}
