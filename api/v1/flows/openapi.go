package flows

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
)

// getOpenAPI returns an OpenAPI document for starting and following tasks of a version, with its
// declared inputs.
func (h *Handler) getOpenAPI(ctx context.Context, in *versionInput) (*route.Response[json.RawMessage], error) {
	f, v, err := in.findVersion(ctx, h.Catalog)
	if err != nil {
		return nil, err
	}
	inputs, err := h.Catalog.InputsOf(ctx, v)
	if err != nil {
		return nil, err
	}
	d, err := h.documentOf(catalog.NameOf(f), v.Number, inputs)
	if err != nil {
		return nil, err
	}
	if f.Description != "" {
		d.infoSection()["description"] = f.Description
	}
	text, err := json.Marshal(d)
	return &route.Response[json.RawMessage]{Body: text}, err
}

// flowRoutes holds the routes that a client of one flow needs.
var flowRoutes = map[string][]string{"/v1/tasks": {"post"}, "/v1/tasks/{task}": {"get"},
	"/v1/tasks/{task}/signal": {"post"}, "/v1/tasks/{task}/cancel": {"post"}}

// openAPIDocument is a decoded OpenAPI document.
type openAPIDocument map[string]any

func (d openAPIDocument) infoSection() map[string]any { return d["info"].(map[string]any) }

func (d openAPIDocument) schemaSection() map[string]any {
	return d["components"].(map[string]any)["schemas"].(map[string]any)
}

// documentOf returns an OpenAPI document with only the routes and schemas for tasks of a flow.
func (h *Handler) documentOf(flow string, number int, inputs json.RawMessage) (openAPIDocument, error) {
	var d openAPIDocument
	if err := json.Unmarshal(h.Router.DescriptionJSON(), &d); err != nil {
		return nil, err
	}
	d.infoSection()["title"], d.infoSection()["version"] = flow, strconv.Itoa(number)
	delete(d, "tags")
	paths := d["paths"].(map[string]any)
	for path, item := range paths {
		keep := flowRoutes[path]
		maps.DeleteFunc(item.(map[string]any), func(verb string, _ any) bool { return !slices.Contains(keep, verb) })
		if len(keep) == 0 {
			delete(paths, path)
		}
	}
	if err := d.setStartParams(flow, number, inputs); err != nil {
		return nil, err
	}
	d.trimSchemas()
	return d, nil
}

// setStartParams sets the schema of the start params.
func (d openAPIDocument) setStartParams(flow string, number int, inputs json.RawMessage) error {
	start := d.schemaSection()["StartRequest"].(map[string]any)
	properties := start["properties"].(map[string]any)
	properties["flow"] = map[string]any{"type": "string", "const": flow}
	delete(properties, "input")
	if inputs == nil {
		return nil
	}
	var params map[string]any
	numbers := json.NewDecoder(bytes.NewReader(inputs))
	numbers.UseNumber() // keeps all digits of numbers
	if err := numbers.Decode(&params); err != nil {
		return err
	}
	// so that references in the schema do not point into this document
	if _, has := params["$id"]; !has {
		params["$id"] = "urn:troupe:flow:" + flow + ":" + strconv.Itoa(number)
	}
	properties["params"] = params
	if required, _ := params["required"].([]any); len(required) > 0 {
		start["required"] = append(start["required"].([]any), "params")
	}
	return nil
}

// trimSchemas removes schemas that nothing refers to.
func (d openAPIDocument) trimSchemas() {
	const at = "#/components/schemas/"
	used, all := map[string]bool{}, d.schemaSection()
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, _ := v["$ref"].(string); strings.HasPrefix(ref, at) && !used[ref[len(at):]] {
				used[ref[len(at):]] = true
				look(all[ref[len(at):]])
			}
			for _, inside := range v {
				look(inside)
			}
		case []any:
			for _, inside := range v {
				look(inside)
			}
		}
	}
	look(d["paths"])
	maps.DeleteFunc(all, func(name string, _ any) bool { return !used[name] })
}
