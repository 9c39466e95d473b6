package client

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/troupe-engine/troupe/api/wire"
)

// Paging selects a part of a list. The zero value selects the beginning.
type Paging struct {
	Cursor string // Next of the previous page
	Limit  int    // maximum number of items; 0 means that the server decides
}

func (p Paging) queryValues() url.Values {
	q := url.Values{}
	setNonEmpty(q, "cursor", p.Cursor)
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	return q
}

func setNonEmpty(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// All reads a list page by page. It ends after the first error.
//
//	for task, err := range client.All(func(cursor string) (*wire.Page[wire.TaskSummary], error) {
//		return c.Tasks(ctx, client.TaskQuery{Paging: client.Paging{Cursor: cursor}})
//	}) { … }
func All[T any](read func(cursor string) (*wire.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := ""; ; {
			page, err := read(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if cursor = page.Next; cursor == "" {
				return
			}
		}
	}
}

// largestPage is the largest page that servers return.
const largestPage = 500

// collectAll reads a whole list.
func collectAll[T any](read func(cursor string) (*wire.Page[T], error)) ([]T, error) {
	all := []T{}
	for item, err := range All(read) {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// getJSON sends a GET request, which may be repeated.
func getJSON[T any](ctx context.Context, c *Client, path string, query url.Values) (*T, error) {
	return doCall[T](ctx, c, apiCall{method: http.MethodGet, path: path, query: query, repeatable: true})
}

// CheckOption is an option of Publish and Validate.
type CheckOption func(url.Values)

// Strict makes warnings count as errors.
func Strict() CheckOption { return func(q url.Values) { q.Set("strict", "true") } }

func checkQuery(options []CheckOption) url.Values {
	q := url.Values{}
	for _, set := range options {
		set(q)
	}
	return q
}

// Publish makes a definition (JSON or YAML) the newest version of the flow with a slug. If the slug
// is empty, the server derives it from the definition's name. A definition equal to the newest
// version changes nothing.
func (c *Client) Publish(ctx context.Context, slug string, definition []byte, options ...CheckOption) (*wire.PublishResult, error) {
	r := apiCall{method: http.MethodPut, path: "/v1/flows/" + url.PathEscape(slug),
		query: checkQuery(options), body: nonEmptyDefinition(definition),
		kind: kindOfText(definition), repeatable: true}
	if slug == "" {
		r.method, r.path = http.MethodPost, "/v1/flows"
	}
	return doCall[wire.PublishResult](ctx, c, r)
}

// After makes a publication fail (409) unless version is the number of the newest version. 0
// requires that there is none.
func After(version int) CheckOption {
	return func(q url.Values) { q.Set("after", strconv.Itoa(version)) }
}

// Try starts a task of a definition (JSON or YAML) without publishing the definition. Without an
// idempotency key, the client generates one, so that a retry starts no second task.
func (c *Client) Try(ctx context.Context, definition []byte, t wire.TrialRequest) (*wire.TrialResult, error) {
	t.Definition, _ = json.Marshal(string(definition)) // a string can always be marshaled
	own := t.IdempotencyKey == ""
	if own {
		t.IdempotencyKey = crand.Text()
	}
	body, err := encodeBody(t)
	if err != nil {
		return nil, fmt.Errorf("trying a definition: %w", err)
	}
	tried, err := doCall[wire.TrialResult](ctx, c, apiCall{method: http.MethodPost, path: "/v1/try",
		body: body, kind: "application/json", repeatable: true})
	if err == nil && own {
		tried.Created = true // an earlier try of this call may have started the task
	}
	return tried, err
}

// Validate returns all problems of a definition and stores nothing.
func (c *Client) Validate(ctx context.Context, definition []byte, options ...CheckOption) (*wire.Validation, error) {
	return doCall[wire.Validation](ctx, c, apiCall{method: http.MethodPost, path: "/v1/validate",
		query: checkQuery(options), body: nonEmptyDefinition(definition),
		kind: kindOfText(definition), repeatable: true})
}

// nonEmptyDefinition replaces an empty definition by an empty line. The server then reports a
// problem of the definition instead of a missing body.
func nonEmptyDefinition(definition []byte) []byte {
	if len(definition) == 0 {
		return []byte("\n")
	}
	return definition
}

func kindOfText(definition []byte) string {
	if bytes.HasPrefix(bytes.TrimSpace(definition), []byte("{")) {
		return "application/json"
	}
	return "application/yaml"
}

// Flows lists flows, newest first.
func (c *Client) Flows(ctx context.Context, p Paging) (*wire.Page[wire.Flow], error) {
	return c.FindFlows(ctx, FlowQuery{Paging: p})
}

// FlowQuery selects flows and the details of the answer.
type FlowQuery struct {
	Paging
	Text    string // text in the slug, name or description
	ByName  bool   // sort by slug; otherwise newest first
	Summary bool   // include a summary of each flow's recent tasks
}

// FindFlows lists the flows that a query selects.
func (c *Client) FindFlows(ctx context.Context, f FlowQuery) (*wire.Page[wire.Flow], error) {
	q := f.queryValues()
	setNonEmpty(q, "q", f.Text)
	if f.ByName {
		q.Set("sort", "name")
	}
	if f.Summary {
		q.Set("with", "summary")
	}
	return getJSON[wire.Page[wire.Flow]](ctx, c, "/v1/flows", q)
}

// Flow reads a flow by its slug or id.
func (c *Client) Flow(ctx context.Context, flow string) (*wire.Flow, error) {
	return getJSON[wire.Flow](ctx, c, "/v1/flows/"+url.PathEscape(flow), nil)
}

// Versions lists a flow's versions, highest number first.
func (c *Client) Versions(ctx context.Context, flow string, p Paging) (*wire.Page[wire.Version], error) {
	return getJSON[wire.Page[wire.Version]](ctx, c, "/v1/flows/"+url.PathEscape(flow)+"/versions", p.queryValues())
}

// Version reads a version with its definition. number 0 means the newest published version.
func (c *Client) Version(ctx context.Context, flow string, number int) (*wire.Version, error) {
	return getJSON[wire.Version](ctx, c, versionPath(flow, number), nil)
}

// Graph returns the graph of a version. number 0 means the newest published version.
func (c *Client) Graph(ctx context.Context, flow string, number int) (*wire.Graph, error) {
	return getJSON[wire.Graph](ctx, c, versionPath(flow, number)+"/graph", nil)
}

// Diff returns the differences of two versions of a flow. to 0 means the newest published version,
// and from 0 the version before to.
func (c *Client) Diff(ctx context.Context, flow string, from, to int) (*wire.FlowDiff, error) {
	q := url.Values{}
	for name, number := range map[string]int{"from": from, "to": to} {
		if number > 0 {
			q.Set(name, strconv.Itoa(number))
		}
	}
	return getJSON[wire.FlowDiff](ctx, c, "/v1/flows/"+url.PathEscape(flow)+"/diff", q)
}

// FlowOpenAPI returns an OpenAPI document for starting and following tasks of a version. number 0
// means the newest published version.
func (c *Client) FlowOpenAPI(ctx context.Context, flow string, number int) (json.RawMessage, error) {
	text, err := getJSON[json.RawMessage](ctx, c, versionPath(flow, number)+"/openapi", nil)
	if err != nil {
		return nil, err
	}
	return *text, nil
}

func versionPath(flow string, number int) string {
	name := "latest"
	if number != 0 {
		name = strconv.Itoa(number)
	}
	return "/v1/flows/" + url.PathEscape(flow) + "/versions/" + name
}

// DeleteFlow deletes a flow with its versions. If the flow has tasks, it deletes them if tasks is
// true, and else fails with a conflict.
func (c *Client) DeleteFlow(ctx context.Context, flow string, tasks bool) (*wire.DeletedFlow, error) {
	q := url.Values{}
	if tasks {
		q.Set("tasks", "true")
	}
	return doCall[wire.DeletedFlow](ctx, c, apiCall{method: http.MethodDelete,
		path: "/v1/flows/" + url.PathEscape(flow), query: q, repeatable: true})
}
