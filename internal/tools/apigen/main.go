// Command apigen generates the TypeScript types of an OpenAPI document, for pages that call that
// API:
//
//	go run ./internal/tools/apigen openapi.json api.gen.ts
//
// It writes an interface for each schema, and one called Routes with a row for each operation, by
// "METHOD path". The row holds the parameters in path, query and headers, the body, and the answer.
// Types leave nothing in the compiled program; only the table of the roles that may call each
// operation does.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := generateFile(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "apigen:", err)
		os.Exit(1)
	}
}

func generateFile(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: apigen DOCUMENT FILE")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var doc openAPIDocument
	if err := json.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("reading %s: %w", args[0], err)
	}
	var out bytes.Buffer
	if err := doc.writeTypeScript(&out); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[1], out.Bytes(), 0o644)
}
