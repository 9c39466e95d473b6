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

// reading is how definitions are read here: in pgflow's words, and without fields that mean
// nothing.
var reading = define.Reading{Pgflow: true, Known: true}

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
	d.text = text
	if parsed, _ := reading.Parse(d.written); parsed != nil && parsed.Profile == define.ProfilePgflow {
		d.text = define.WriteProfile(&define.Definition{}, text, define.ProfilePgflow)
	}
	return d, nil
}

// parseWritten reads what was written, so that whatever is wrong is told with its place there.
func (d pgDefinition) parseWritten([]byte) (*define.Definition, error) {
	return reading.Parse(d.written)
}
