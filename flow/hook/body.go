package hook

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Body converts a request body to a value. JSON stays as it is, a form becomes an object of texts,
// any other text a JSON text, and an empty body null.
//
// A body that is declared as a form, but is a JSON object or list, counts as JSON, because curl
// declares everything as a form. A form whose only field is payload, with JSON inside, counts as
// that JSON; GitHub and others send such forms.
func Body(contentType string, body []byte) (json.RawMessage, error) {
	kind, _, _ := mime.ParseMediaType(contentType) // an invalid type counts as unknown
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(trimmed) == 0:
		return json.RawMessage("null"), nil
	case kind == "application/x-www-form-urlencoded" && trimmed[0] != '{' && trimmed[0] != '[':
		return formValue(string(body))
	case strings.HasPrefix(kind, "text/") || kind == "application/xml":
		return textValue(body)
	}
	if err := flow.CheckJSON(trimmed); err != nil {
		return nil, flow.Errorf(flow.Invalid,
			"body: it %v; its Content-Type says what it is: application/json, "+
				"application/x-www-form-urlencoded or text/plain", err)
	}
	return expr.Compact(trimmed), nil
}

func textValue(body []byte) (json.RawMessage, error) {
	if !utf8.Valid(body) {
		return nil, flow.Errorf(flow.Invalid, "body: it is no text in UTF-8")
	}
	return expr.Quote(string(body)), nil
}

// formValue returns a form as an object. A field is a text, and a repeated field a list.
func formValue(body string) (json.RawMessage, error) {
	values, err := url.ParseQuery(body)
	if err != nil {
		return nil, flow.Errorf(flow.Invalid, "body: it is no form: %v", err)
	}
	if payload := values["payload"]; len(values) == 1 && len(payload) == 1 && expr.Valid([]byte(payload[0])) {
		return expr.Compact(json.RawMessage(payload[0])), nil
	}
	fields := make(map[string]any, len(values))
	for name, list := range values {
		if fields[name] = list; len(list) == 1 {
			fields[name] = list[0]
		}
	}
	return json.Marshal(fields)
}
