package main

import (
	"encoding/json"
	"errors"
	"fmt"
)

// openAPIDocument is the used part of an OpenAPI document.
type openAPIDocument struct {
	Paths      map[string]map[string]*apiOperation
	Components struct{ Schemas map[string]*jsonSchema }
}

type apiOperation struct {
	Summary     string
	Parameters  []operationParameter
	RequestBody *bodyContent
	Responses   map[string]*bodyContent
	Roles       []string `json:"x-roles"`
}

type operationParameter struct {
	Name        string
	In          string
	Description string
	Required    bool
	Schema      *jsonSchema
}

type bodyContent struct {
	Content  map[string]struct{ Schema *jsonSchema }
	Required bool
}

// jsonSchema is the part of a JSON Schema that describes types.
type jsonSchema struct {
	Ref         string `json:"$ref"`
	Type        typeList
	Description string
	Enum        []any
	Format      string
	Items       *jsonSchema
	Properties  map[string]*jsonSchema
	Required    []string
	Additional  *additionalProperties `json:"additionalProperties"`
	AnyOf       []*jsonSchema
	OneOf       []*jsonSchema
}

// typeList is a single type, or a list of types.
type typeList []string

func (t *typeList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = typeList{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("the type of a schema is neither a text nor a list: %w", err)
	}
	*t = list
	return nil
}

// additionalProperties describes the other properties of an object: none, any, or properties of a
// schema.
type additionalProperties struct {
	may bool
	of  *jsonSchema
}

func (a *additionalProperties) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &a.may) == nil {
		return nil
	}
	a.may, a.of = true, &jsonSchema{}
	return json.Unmarshal(b, a.of)
}

// answerSchema returns the schema of an operation's successful JSON response; nil if there is none.
func (o *apiOperation) answerSchema() (*jsonSchema, error) {
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

// bodySchema returns the schema of an operation's request body; nil if there is none.
func (o *apiOperation) bodySchema() (s *jsonSchema, required bool) {
	if o.RequestBody == nil {
		return nil, false
	}
	return o.RequestBody.Content["application/json"].Schema, o.RequestBody.Required
}
