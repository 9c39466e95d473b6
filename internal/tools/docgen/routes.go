package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
)

// openAPIDocument is the part of the description of /v1 that the pages show.
type openAPIDocument struct {
	Tags       []struct{ Name string }
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Schemas map[string]objectSchema }
}

// apiOperation is a method of a path.
type apiOperation struct {
	OperationID string `json:"operationId"`
	Summary     string
	Tags        []string
	Parameters  []struct{ Name, In string }
	Roles       []string `json:"x-roles"`
}

// objectSchema describes an object.
type objectSchema struct {
	Properties map[string]struct{ Description string }
	Required   []string
}

func readDocument(root string) (openAPIDocument, error) {
	var d openAPIDocument
	text, err := os.ReadFile(filepath.Join(root, "api", "v1", "openapi.json"))
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return d, fmt.Errorf("read the description of /v1: %w", err)
	}
	return d, nil
}

// routeMethods are the methods of the routes, in their order on the page.
var routeMethods = []string{"get", "post", "put", "patch", "delete"}

// describeRoutes lists the routes of /v1 by their tags.
func describeRoutes(root string) (string, error) {
	d, err := readDocument(root)
	if err != nil {
		return "", err
	}
	tables := map[string]*markdownTable{}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range routeMethods {
			raw, found := d.Paths[path][method]
			if !found {
				continue
			}
			var o apiOperation
			if err := json.Unmarshal(raw, &o); err != nil {
				return "", fmt.Errorf("%s %s: %w", method, path, err)
			}
			if len(o.Tags) == 0 {
				return "", fmt.Errorf("%s %s has no tag", method, path)
			}
			t := tables[o.Tags[0]]
			if t == nil {
				t = newTable("route", "what it does", "query", "role")
				tables[o.Tags[0]] = t
			}
			t.addRow(quoteCode(strings.ToUpper(method)+" "+path), escapeText(o.Summary), quoteAll(o.queryNames()), lowestRole(o.Roles))
		}
	}
	var parts []string
	for _, tag := range d.Tags {
		if t := tables[tag.Name]; t != nil {
			parts = append(parts, "### "+strings.ToUpper(tag.Name[:1])+tag.Name[1:]+"\n\n"+t.String())
			delete(tables, tag.Name)
		}
	}
	if len(tables) > 0 {
		return "", fmt.Errorf("tags that the description does not list: %v", slices.Sorted(maps.Keys(tables)))
	}
	return strings.Join(parts, "\n"), nil
}

func (o *apiOperation) queryNames() []string {
	var names []string
	for _, p := range o.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	return names
}

// lowestRole returns the lowest of the roles for people that may call a route, and whether workers
// may.
func lowestRole(roles []string) string {
	if len(roles) == 0 {
		return "none"
	}
	lowest := quoteCode(roles[0])
	if roles[0] != "worker" && slices.Contains(roles, "worker") {
		lowest += ", `worker`"
	}
	return lowest
}

// describeErrors lists the kinds of errors and the fields of a problem document.
func describeErrors(root string) (string, error) {
	d, err := readDocument(root)
	if err != nil {
		return "", err
	}
	kinds := newTable("code", "type", "status", "what to do")
	for _, k := range api.ErrorKinds() {
		if k.Kind == api.TimedOut { // not an error of /v1
			continue
		}
		code := string(k.Kind)
		kinds.addRow(quoteCode(code), quoteCode(wire.ProblemType(code)),
			strconv.Itoa(k.Status)+" "+http.StatusText(k.Status), escapeText(k.Hint))
	}
	schema, found := d.Components.Schemas["Problem"]
	if !found {
		return "", fmt.Errorf("the description has no schema Problem")
	}
	fields := newTable("field", "content")
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		text := escapeText(schema.Properties[name].Description)
		if !slices.Contains(schema.Required, name) {
			text += " (optional)"
		}
		fields.addRow(quoteCode(name), text)
	}
	return kinds.String() + "\n" + fields.String(), nil
}
