// Command apigen writes the types of an OpenAPI document down in TypeScript, for pages that speak
// to that API:
//
//	go run ./internal/apigen openapi.json api.gen.ts
//
// An interface for each schema, and one called Routes with a row for each operation, by "METHOD
// path": what it takes in its path, query and headers, its body, and its answer. They are types
// alone: nothing of them is left in a program, but for the table of the roles that may call each.
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
