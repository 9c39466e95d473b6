package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// logMethods are the methods of slog that take a message and pairs of keys and values, by the
// position of the message.
var logMethods = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1,
	"ErrorContext": 1, "Log": 2, "LogAttrs": 2, "With": -1}

// attributes are the functions of slog that make a pair of a key and a value.
var attributes = map[string]bool{"String": true, "Int": true, "Int64": true, "Duration": true, "Time": true, "Bool": true, "Any": true}

// readLogs returns the messages and keys of log lines in the product's Go code.
func readLogs(root string) ([]string, error) {
	var lines []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != root):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				lines = append(lines, logWords(call)...)
			}
			return true
		})
		return nil
	})
	return lines, err
}

// logWords returns the message and the keys of a call that writes a log line or makes an attribute.
func logWords(call *ast.CallExpr) []string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if pkg, ok := method.X.(*ast.Ident); ok && pkg.Name == "slog" && attributes[method.Sel.Name] && len(call.Args) == 2 {
		return keyWords(call.Args[:1])
	}
	message, ok := logMethods[method.Sel.Name]
	if !ok || !isLogger(method.X) || len(call.Args) <= message {
		return nil
	}
	if message < 0 {
		return keyWords(call.Args)
	}
	var lines []string
	if text, ok := textOf(call.Args[message]); ok {
		lines = append(lines, fmt.Sprintf("log message %q", text))
	}
	return append(lines, keyWords(call.Args[message+1:])...)
}

// keyWords returns the keys among pairs of keys and values.
func keyWords(pairs []ast.Expr) []string {
	var lines []string
	for i := 0; i < len(pairs); i += 2 {
		if key, ok := textOf(pairs[i]); ok {
			lines = append(lines, "log key "+key)
		}
	}
	return lines
}

// isLogger reports whether an expression is named like a logger.
func isLogger(e ast.Expr) bool {
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	case *ast.CallExpr:
		return isLoggerCall(e)
	}
	name = strings.ToLower(name)
	return name == "slog" || strings.HasSuffix(name, "log") || strings.HasSuffix(name, "logger")
}

// isLoggerCall reports whether a call returns a logger, such as log.With.
func isLoggerCall(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (method.Sel.Name == "With" && isLogger(method.X) || strings.HasSuffix(strings.ToLower(method.Sel.Name), "log"))
}

// textOf returns the value of a text that is written in the code.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, okLeft := textOf(e.X)
		right, okRight := textOf(e.Y)
		return left + right, okLeft && okRight && e.Op == token.ADD
	}
	return "", false
}
