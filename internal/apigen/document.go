package main

import (
	"encoding/json"
	"errors"
	"fmt"
)

// document is what is read of an OpenAPI document.
type document struct {
	Paths      map[string]map[string]*operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	Summary     string
	Parameters  []parameter
	RequestBody *content
	Responses   map[string]*content
	Roles       []string `json:"x-roles"`
}

type parameter struct {
	Name        string
	In          string
	Description string
	Required    bool
	Schema      *schema
}

type content struct {
	Content  map[string]struct{ Schema *schema }
	Required bool
}

// schema is a JSON Schema, as far as it says something about types.
type schema struct {
	Ref         string `json:"$ref"`
	Type        types
	Description string
	Enum        []any
	Format      string
	Items       *schema
	Properties  map[string]*schema
	Required    []string
	Additional  *additional `json:"additionalProperties"`
	AnyOf       []*schema
	OneOf       []*schema
}

// types is one type, or a list of them.
type types []string

func (t *types) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = types{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("the type of a schema is neither a text nor a list: %w", err)
	}
	*t = list
	return nil
}

// additional says what else an object may have: nothing, anything, or what a schema says.
type additional struct {
	may bool
	of  *schema
}

func (a *additional) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &a.may) == nil {
		return nil
	}
	a.may, a.of = true, &schema{}
	return json.Unmarshal(b, a.of)
}

// answer is the schema of the JSON that an operation answers when it has done what it was asked, nil = it answers none.
func (o *operation) answer() (*schema, error) {
	for _, status := range []string{"200", "201", "202"} {
		r := o.Responses[status]
		if r == nil {
			continue
		}
		if j, ok := r.Content["application/json"]; ok {
			return j.Schema, nil
		}
		return nil, nil
	}
	if len(o.Responses) == 0 {
		return nil, errors.New("it has no responses")
	}
	return nil, nil
}

// body is the schema of what an operation takes, nil = nothing.
func (o *operation) body() (s *schema, required bool) {
	if o.RequestBody == nil {
		return nil, false
	}
	return o.RequestBody.Content["application/json"].Schema, o.RequestBody.Required
}
