package conversation

import (
	"encoding/json"
	"strconv"
)

// Question is a question to a person.
type Question struct {
	Text      string
	Form      json.RawMessage // JSON Schema of the answer; nil for an action
	Show      []Shown
	Assignees []string // people that should decide; other people may decide, too
}

// Shown is a value to show with its label.
type Shown struct {
	Label string
	Value json.RawMessage
}

// questionParams are the params of an approval's question. Shown values may be params, too.
type questionParams struct {
	Text      string                     `json:"text,omitempty"`
	Form      json.RawMessage            `json:"form,omitempty"`
	Assignees []string                   `json:"assignees,omitempty"`
	Show      json.RawMessage            `json:"show,omitempty"`
	Values    map[string]json.RawMessage `json:"values,omitempty"`
}

// EncodeParams returns the question as the params of an approval; nil for a nil question.
func (q *Question) EncodeParams() json.RawMessage {
	if q == nil {
		return nil
	}
	p := questionParams{Text: q.Text, Form: q.Form, Assignees: q.Assignees}
	for i, shown := range q.Show {
		key, before := "value"+strconv.Itoa(i+1), byte(',')
		if i == 0 {
			before, p.Values = '{', map[string]json.RawMessage{}
		}
		p.Values[key] = shown.Value
		p.Show = append(append(append(p.Show, before), writeJSON(shown.Label)...), ':')
		p.Show = append(p.Show, writeJSON("$params.values."+key)...)
	}
	if len(p.Show) > 0 {
		p.Show = append(p.Show, '}')
	}
	return writeJSON(p)
}

// writeJSON returns the JSON of a value that can always be encoded.
func writeJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
