package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// openAPIDocument is the part of an OpenAPI document with public words.
type openAPIDocument struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Schemas map[string]jsonSchema }
}

// apiOperation is a route of the document.
type apiOperation struct {
	OperationID string `json:"operationId"`
	Summary     string
	Description string
	Parameters  []struct{ Name, In, Description string }
}

// jsonSchema is a type of the document.
type jsonSchema struct {
	Description string
	Properties  map[string]jsonSchema
}

// readAPI returns the routes, parameters, schemas and fields of /v1 with their documentation.
func readAPI(root string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(root, "api", "v1", "openapi.json"))
	if err != nil {
		return nil, err
	}
	var d openAPIDocument
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var lines []string
	for path, methods := range d.Paths {
		for method, raw := range methods {
			var o apiOperation
			if json.Unmarshal(raw, &o) != nil || o.OperationID == "" {
				continue // shared by all methods of a path
			}
			lines = append(lines, fmt.Sprintf("api route %s %s: %s. %s", method, path, o.Summary, o.Description))
			for _, p := range o.Parameters {
				lines = append(lines, fmt.Sprintf("api parameter %s %s %s (%s): %s", method, path, p.Name, p.In, p.Description))
			}
		}
	}
	for name, s := range d.Components.Schemas {
		lines = append(lines, fmt.Sprintf("api schema %s: %s", name, s.Description))
		for field, f := range s.Properties {
			lines = append(lines, fmt.Sprintf("api field %s.%s: %s", name, field, f.Description))
		}
	}
	return lines, nil
}
