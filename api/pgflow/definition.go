package pgflow

import (
	"bytes"
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
)

// pgDefinition is a definition as it was sent and as it is kept.
type pgDefinition struct {
	written []byte // JSON or YAML
	text    []byte // JSON, with its profile
}

// readDefinition takes a definition as JSON, or as a text of JSON or YAML.
func readDefinition(sent json.RawMessage) (pgDefinition, error) {
	text := bytes.TrimSpace(sent)
	if len(text) == 0 || string(text) == "null" {
		return pgDefinition{}, flow.Errorf(flow.Invalid, "definition is missing")
	}
	var inner string
	if text[0] == '"' && json.Unmarshal(text, &inner) == nil {
		text = []byte(inner)
	}
	d := pgDefinition{written: text}
	if !json.Valid(text) {
		var err error
		if text, err = define.YAMLToJSON(text); err != nil {
			return d, err
		}
	}
	d.text = withProfile(text)
	return d, nil
}

// parse reads what was written, so that whatever is wrong is told with its place there.
func (d pgDefinition) parse(kept []byte) (*define.Definition, error) {
	parsed, err := define.Parse(d.written)
	if whole, _ := define.Parse(kept); parsed != nil && whole != nil {
		parsed.Profile = whole.Profile
	}
	return parsed, err
}

// withProfile makes pgflow the profile of a definition that names none, unless it is one of graph mode.
func withProfile(text []byte) []byte {
	var d map[string]json.RawMessage
	if json.Unmarshal(text, &d) != nil || d == nil {
		return text // the parser says what is wrong with it
	}
	for _, name := range []string{"profile", "start", "edges", "mode"} {
		if d[name] != nil {
			return text
		}
	}
	rest := bytes.TrimLeft(bytes.TrimLeft(text, " \t\r\n")[1:], " \t\r\n")
	if len(d) > 0 {
		rest = append([]byte(","), rest...)
	}
	return append([]byte(`{"profile":"pgflow"`), rest...)
}
