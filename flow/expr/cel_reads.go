package expr

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Read is a part of a variable that an expression names.
type Read struct {
	Path []string // name of the variable, then the keys to the part
	At   int      // position in the expression, in characters from 0
}

// Reads returns the parts of variables that the expression names. For a lookup by a computed key,
// the path ends before that key.
func (c *CEL) Reads() []Read {
	if c == nil {
		return nil
	}
	return c.reads
}

// readsOf finds the named parts in a checked expression.
func readsOf(checked *ast.AST) (found []Read) {
	inner := map[int64]bool{} // expressions that are only the beginning of a longer path
	root := ast.NavigateAST(checked)
	for _, e := range ast.MatchDescendants(root, func(e ast.NavigableExpr) bool { return operandOf(e) != nil }) {
		inner[operandOf(e).ID()] = true
	}
	for _, e := range ast.MatchDescendants(root, func(e ast.NavigableExpr) bool { return operandOf(e) != nil && !inner[e.ID()] }) {
		if path := pathOf(e); len(path) > 1 {
			where, _ := checked.SourceInfo().GetOffsetRange(rootOf(e).ID())
			found = append(found, Read{path, int(where.Start)})
		}
	}
	return found
}

// rootOf returns the expression at the start of a path.
func rootOf(e ast.Expr) ast.Expr {
	for of := operandOf(e); of != nil; of = operandOf(e) {
		e = of
	}
	return e
}

// operandOf returns the operand of a field or element access by name. It returns nil if e is not
// such an access.
func operandOf(e ast.Expr) ast.Expr {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand()
	case ast.CallKind:
		if c := e.AsCall(); c.FunctionName() == operators.Index && keyOf(c.Args()[1]) != "" {
			return c.Args()[0]
		}
	}
	return nil
}

// keyOf returns the text of a literal, or "" if e is not a text literal.
func keyOf(e ast.Expr) string {
	if e.Kind() != ast.LiteralKind {
		return ""
	}
	text, _ := e.AsLiteral().(types.String)
	return string(text)
}

// pathOf returns the path of e, or nil if e is not a part of a variable.
func pathOf(e ast.Expr) []string {
	switch of := operandOf(e); {
	case e.Kind() == ast.IdentKind:
		return []string{e.AsIdent()}
	case of == nil:
		return nil
	case e.Kind() == ast.SelectKind:
		return appendKey(pathOf(of), e.AsSelect().FieldName())
	default:
		return appendKey(pathOf(of), keyOf(e.AsCall().Args()[1]))
	}
}

func appendKey(path []string, key string) []string {
	if path == nil {
		return nil
	}
	return append(path, key)
}
