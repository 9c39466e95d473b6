package pgflowhttp

import (
	"bytes"
	"encoding/json"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// pgDefinition is a definition as it was sent and in the stored form.
type pgDefinition struct {
	written []byte // JSON or YAML
	text    []byte // JSON, with its profile
}

// reading configures the parser: it accepts pgflow's words and rejects unknown fields.
var reading = definition.Reading{Pgflow: true, Known: true}

// readDefinition reads a definition from JSON, or from a text of JSON or YAML.
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
		if text, err = definition.YAMLToJSON(text); err != nil {
			return d, err
		}
	}
	d.text = text
	if parsed, _ := reading.Parse(d.written); parsed != nil && parsed.Profile == definition.ProfilePgflow {
		d.text = definition.WriteProfile(&definition.Definition{}, text, definition.ProfilePgflow)
	}
	return d, nil
}

// parseWritten parses the definition as it was sent, so that problems have their place in it.
func (d pgDefinition) parseWritten([]byte) (*definition.Definition, error) {
	return reading.Parse(d.written)
}
