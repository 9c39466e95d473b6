package cases

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Mock answers the jobs of a node, service or function.
type Mock struct {
	At      Place
	Answers []Given
}

// Given is an answer with the calls that get it. Without a condition it is used Times times; the
// default is once, or without limit for the last answer.
type Given struct {
	Output json.RawMessage
	Echo   bool      // return the input as output
	Expr   *expr.CEL // expression that computes the output
	Error  string
	Failed bool
	Fatal  bool
	Silent bool
	After  time.Duration

	Times int // 0 means no limit; -1 means that Finish sets it
	Has   *expr.Pattern
	When  *expr.CEL
	Unit  int // -1 means any
	Func  func(*rehearse.Call) rehearse.Answer
}

// callLanguage is the expression language for calls.
var callLanguage = sync.OnceValue(func() *expr.Language {
	return expr.NewLanguage("input", "params", "attempt", "unit", "visit", "call")
})

func (r *caseReader) readMocks(c *Case, n *yaml.Node) {
	if !r.expectKind(n, yaml.MappingNode, "mocks") {
		return
	}
	for _, p := range r.mappingPairs(n) {
		c.Mocks[r.readName(p.key, "mocks")] = r.readMock(p.value)
	}
}

func (r *caseReader) readMock(n *yaml.Node) *Mock {
	m := &Mock{At: placeOf(n)}
	all := listElements(n)
	if len(all) == 0 {
		r.reportError(n, "a mock needs an answer: an output, or an error")
	}
	for i, e := range all {
		m.Answers = append(m.Answers, r.readGiven(e, i == len(all)-1))
	}
	return m
}

func (r *caseReader) readGiven(n *yaml.Node, last bool) Given {
	g, kinds := Given{Unit: -1, Times: -1}, 0
	r.readFields(n, "an answer", map[string]func(*yaml.Node){
		"output": func(n *yaml.Node) { g.Output = r.readJSON(n); kinds++ },
		"echo":   func(n *yaml.Node) { g.Echo = r.readBool(n, "echo"); kinds++ },
		"expr":   func(n *yaml.Node) { g.Expr = r.readCEL(n, "expr", callLanguage); kinds++ },
		"error":  func(n *yaml.Node) { g.Error, g.Failed = r.readText(n, "error"), true; kinds++ },
		"silent": func(n *yaml.Node) { g.Silent = r.readBool(n, "silent"); kinds++ },
		"fatal":  func(n *yaml.Node) { g.Fatal = r.readBool(n, "fatal") },
		"after":  func(n *yaml.Node) { g.After = r.readSpan(n, "after") },
		"times":  func(n *yaml.Node) { g.Times = r.readNumber(n, "times", 1) },
		"match":  func(n *yaml.Node) { g.Has, _ = expr.ParsePattern(r.readJSON(n)) },
		"when":   func(n *yaml.Node) { g.When = r.readCEL(n, "when", callLanguage) },
		"unit":   func(n *yaml.Node) { g.Unit = r.readNumber(n, "unit", 0) },
	})
	switch {
	case kinds > 1:
		r.reportError(n, "an answer is one of output, echo, expr, error and silent, not several")
	case kinds == 0 && resolveAlias(n).Kind == yaml.MappingNode:
		r.reportError(n, "the answer says nothing: give it an output, or an error; output: null is an empty one")
	case g.Fatal && !g.Failed:
		r.reportError(n, "fatal belongs to an error")
	}
	g.Finish(last)
	return g
}

// Finish sets the number of uses of an answer that does not specify it (Times -1).
func (g *Given) Finish(last bool) {
	if g.Times >= 0 {
		return
	}
	g.Times = 1
	if last || g.isConditional() {
		g.Times = 0
	}
}

// CallCondition compiles an expression about a call.
func CallCondition(source string) (*expr.CEL, error) { return callLanguage().Compile(source) }

// isConditional reports whether only some calls get the answer.
func (g *Given) isConditional() bool { return g.Has != nil || g.When != nil || g.Unit >= 0 }

// Cast holds the mocks of one story and counts their answers.
type Cast struct {
	mocks map[string]*Mock
	used  map[*Given]int
	calls map[*Mock]int
}

// NewCast returns a Cast with all counters at zero.
func NewCast(mocks map[string]*Mock) *Cast {
	return &Cast{mocks, map[*Given]int{}, map[*Mock]int{}}
}

// Answer returns the answer to a call, from the mock of its node, or else of its service or
// function.
func (k *Cast) Answer(c *rehearse.Call) rehearse.Answer {
	m := k.mocks[c.Step()]
	for _, name := range []string{c.Exec.Service, c.Exec.Func} {
		if m == nil && name != "" {
			m = k.mocks[name]
		}
	}
	if m == nil {
		return rehearse.Answer{Err: fmt.Errorf(
			"nobody answers %s: mock it by its node (%s) or by its name (%s)", c.Name, c.Step(), c.Service())}
	}
	k.calls[m]++
	for i := range m.Answers {
		g := &m.Answers[i]
		if g.Times > 0 && k.used[g] >= g.Times {
			continue
		}
		fits, err := g.matchesCall(c, k.calls[m])
		if err != nil {
			return rehearse.Answer{Err: fmt.Errorf("the mock that answers %s: %w", c.Name, err)}
		}
		if fits {
			k.used[g]++
			return g.makeAnswer(c, k.calls[m])
		}
	}
	return rehearse.Answer{Err: fmt.Errorf(
		"the mock has no answer for %s, which is its call %d, with %s", c.Name, k.calls[m],
		rehearse.Value(c.Input))}
}

func (g *Given) matchesCall(c *rehearse.Call, nth int) (bool, error) {
	if g.Unit >= 0 && g.Unit != c.Unit || g.Has != nil && !g.Has.In(c.Input) {
		return false, nil
	}
	if g.When == nil {
		return true, nil
	}
	return g.When.Bool(callVars(c, nth))
}

func (g *Given) makeAnswer(c *rehearse.Call, nth int) rehearse.Answer {
	a := rehearse.Answer{Output: g.Output, Fatal: g.Fatal, Silent: g.Silent, After: g.After}
	switch {
	case g.Func != nil:
		a = g.Func(c)
		a.After += g.After
	case g.Failed:
		if a.Error = g.Error; a.Error == "" {
			a.Error = "failed"
		}
	case g.Echo:
		a.Output = c.Input
	case g.Expr != nil:
		out, err := g.Expr.Eval(callVars(c, nth))
		if err != nil {
			a.Err = fmt.Errorf("the mock that answers %s: %w", c.Name, err)
		}
		a.Output = out
	}
	return a
}

// callVars returns the variables of expressions about a call.
func callVars(c *rehearse.Call, nth int) expr.Vars {
	return func(name string) (expr.Source, bool) {
		switch name {
		case "input":
			return expr.Raw(orNull(c.Input)), true
		case "params":
			return expr.Raw(orNull(c.Params)), true
		case "attempt":
			return expr.Raw(numberJSON(c.Attempt)), true
		case "unit":
			return expr.Raw(numberJSON(c.Unit)), true
		case "visit":
			return expr.Raw(numberJSON(c.Visit)), true
		case "call":
			return expr.Raw(numberJSON(nth)), true
		}
		return expr.Source{}, false
	}
}

func numberJSON(n int) json.RawMessage { return json.RawMessage(strconv.Itoa(n)) }

func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}
