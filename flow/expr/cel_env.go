package expr

import (
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

// Limits of one expression. The time to check an expression grows with the cube of its depth.
const (
	maxCELLength = 2_000 // characters
	maxCELNodes  = 500   // after the expansion of macros
	maxCELMacros = 16    // map, filter, all, exists, …
	maxCELDepth  = 40
)

// Language is CEL with certain variables. Its creation takes twice as long as the compilation of an
// expression, so callers that compile many expressions create it once.
type Language struct {
	env   *cel.Env
	nodes costMetering
	vars  []string
}

// NewLanguage returns CEL with variables of these names.
func NewLanguage(vars ...string) *Language {
	options := append(setFunctions(),
		cel.StdLib(cel.StdLibSubset(withoutTime())),
		ext.Strings(ext.StringsVersion(4), ext.StringsMaxPrecision(20)),
		ext.Math(),
		ext.Lists(ext.ListsVersion(2), ext.ListsMaxRangeSize(100_000)),
		ext.Encoders(ext.EncodersVersion(0)),
		mixedArithmetic(),
		cel.CrossTypeNumericComparisons(true),
		cel.EnableIdentifierEscapeSyntax(),
		cel.ParserExpressionSizeLimit(maxCELLength),
		cel.ParserRecursionLimit(maxCELDepth),
		cel.ParserErrorRecoveryLimit(8),
		cel.ExpressionNodeLimit(maxCELNodes),
		cel.ASTValidators(literalRegex{}),
	)
	for _, name := range vars {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	e, err := cel.NewCustomEnv(options...)
	if err != nil {
		panic(fmt.Sprintf("expr: CEL over %q: %v", vars, err))
	}
	nodes, err := newMetering(e)
	if err != nil {
		panic(fmt.Sprintf("expr: the functions of CEL: %v", err))
	}
	return &Language{e, nodes, vars}
}

// Compile compiles an expression. The error is of type Faults and contains the position of each
// fault.
func (l *Language) Compile(source string) (c *CEL, err error) {
	defer func() {
		// The library may panic, but a user's definition must not end the program.
		if r := recover(); r != nil {
			c, err = nil, Faults{{0, fmt.Sprintf("the expression cannot be compiled: %v", r)}}
		}
	}()
	if strings.TrimSpace(source) == "" {
		return nil, Faults{{0, "the expression is empty"}}
	}
	checked, err := l.checkSource(source)
	if err != nil {
		return nil, err
	}
	program, err := l.env.Program(checked, cel.CustomDecoratorV2(l.nodes.meterNode))
	if err != nil {
		return nil, Faults{{0, err.Error()}}
	}
	return &CEL{source: source, kind: checked.OutputType(), program: program, budget: Budget, reads: readsOf(checked.NativeRep())}, nil
}

// checkSource parses and checks an expression.
func (l *Language) checkSource(source string) (*cel.Ast, error) {
	parsed, issues := l.env.Parse(source)
	if issues.Err() != nil {
		return nil, l.toFaults(source, issues)
	}
	tree := ast.NavigateAST(parsed.NativeRep())
	if n := len(ast.MatchDescendants(tree, ast.KindMatcher(ast.ComprehensionKind))); n > maxCELMacros {
		return nil, Faults{{0, fmt.Sprintf("the expression has %d macros (all, exists, filter, map, …), more than %d", n, maxCELMacros)}}
	}
	checked, issues := l.env.Check(parsed)
	if issues.Err() != nil {
		return nil, l.toFaults(source, issues)
	}
	return checked, nil
}

// withoutTime removes the functions that depend on the time zones of the host, and the functions
// that need those.
func withoutTime() *env.LibrarySubset {
	out := env.NewLibrarySubset()
	for _, name := range []string{
		"timestamp", "duration", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear",
		"getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds",
	} {
		out.AddExcludedFunctions(env.NewFunction(name))
	}
	return out
}

// literalRegex requires that regular expressions are literals, so that they can be checked once.
// The library's own validator of their size panics for some expressions.
type literalRegex struct{}

func (literalRegex) Name() string { return "troupe.literal_regex" }

func (literalRegex) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher("matches")) {
		args := call.AsCall().Args()
		pattern := args[len(args)-1]
		if msg := regexProblem(pattern); msg != "" {
			issues.ReportErrorAtID(pattern.ID(), "%s", msg)
		}
	}
}

func regexProblem(pattern ast.Expr) string {
	if pattern.Kind() != ast.LiteralKind {
		return "write the regular expression here as a literal text"
	}
	text, ok := pattern.AsLiteral().(types.String)
	if !ok {
		return ""
	}
	if _, err := RegexStates(string(text)); err != nil {
		return err.Error()
	}
	return ""
}

// RegexStates returns the number of states of a regular expression. A match may try all states for
// each byte of a text, so too many states are an error.
func RegexStates(pattern string) (int, error) {
	n, err := regexStates(pattern)
	if err == nil && n > maxRegex {
		err = fmt.Errorf("the regular expression has %d states, more than %d", n, maxRegex)
	}
	return n, err
}

// regexStates returns the number of states of a regular expression, without a limit.
func regexStates(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}
