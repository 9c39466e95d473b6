package borders

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
)

// pure lists the packages that only decide. There equal inputs must give equal outputs; otherwise
// journals could not be folded again and failures could not be replayed.
var pure = []string{"flow", "flow/codec", "flow/expr", "flow/types", "definition", "definition/define", "definition/compile",
	"flow/duration", "flow/schedule", "definition/show", "dialect/pocketflow", "dialect/ork/dbt", "dialect/ork",
	"flow/hook", "flow/unitid", "flow/trace"}

// world lists the imports forbidden to pure packages. They provide input that is not in a command,
// or work that runs beside the caller.
var world = []string{
	"os", "net", "syscall", "io/ioutil", "log", "database/sql", "runtime",
	"math/rand", "crypto/rand", "sync", "testing",
}

// harmless lists packages below an entry of world that only process text.
var harmless = []string{"net/url", "net/netip"}

// clock lists the names in package time that read the current time, or wait. Durations and
// arithmetic with given times are allowed.
var clock = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Local", "LoadLocation",
}

// listImpurities lists everything in p that depends on more than its input.
func (p goPackage) listImpurities() ([]string, error) {
	var found []string
	for _, path := range p.Imports {
		worldly := slices.ContainsFunc(world, func(root string) bool { return isBelow(root, path) })
		if worldly && !slices.Contains(harmless, path) {
			found = append(found, fmt.Sprintf("%s is pure and must not import %s", p.localName(), path))
		}
	}
	for _, name := range p.GoFiles {
		inFile, err := impureCode(filepath.Join(p.Dir, name), nil)
		if err != nil {
			return nil, err
		}
		found = append(found, inFile...)
	}
	return found, nil
}

// impureCode finds goroutines and uses of the clock. The argument src is the file's text; if nil,
// the file is read.
func impureCode(name string, src any) ([]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("borders: %w", err)
	}
	var found []string
	timeName := importName(file, "time")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, fmt.Sprintf("%s: a pure package starts no goroutine", files.Position(n.Pos())))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == timeName && slices.Contains(clock, n.Sel.Name) {
				found = append(found, fmt.Sprintf("%s: a pure package has no clock: time.%s", files.Position(n.Pos()), n.Sel.Name))
			}
		}
		return true
	})
	return found, nil
}

// importName returns the name by which a file imports a package; "" if it does not.
func importName(file *ast.File, path string) string {
	for _, spec := range file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path
	}
	return ""
}
