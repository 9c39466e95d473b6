package flow

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryEventIsDocumented reads the event types from the source, so that no type is missed.
func TestEveryEventIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/events.md")
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	require.NoError(t, err)
	types := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "EventType" {
			return true
		}
		name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		require.Contains(t, string(page), "`"+name+"`")
		types++
		return true
	})
	require.Greater(t, types, 15)
}
