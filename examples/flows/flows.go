// Package flows holds example flows, one for each thing that flows can do, and what tasks of them end
// as. They need only the services of the demo workers and scripts.
package flows

import (
	"embed"
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
)

// Files are the flows, 01-… to 18-….
//
//go:embed *.yaml
var Files embed.FS

// What is expected of them is in a folder of its own: whoever publishes all files here wants flows only.
//
//go:embed demo/expect.yaml
var expect []byte

// Expectation is one entry of demo/expect.yaml: a task and how it must end.
type Expectation struct {
	File    string          `json:"file"`
	Params  json.RawMessage `json:"params"` // object, or nil
	Signals []Signal        `json:"signals"`
	State   string          `json:"state"`
	Shared  json.RawMessage `json:"shared"` // all of it, at the end
}

// Signal is to be sent some time after the start of its task.
type Signal struct {
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	AfterMS int             `json:"after_ms"`
}

// Expectations reads demo/expect.yaml.
func Expectations() ([]Expectation, error) {
	raw, err := flow.YAMLToJSON(expect)
	if err != nil {
		return nil, fmt.Errorf("demo/expect.yaml: %w", err)
	}
	var all []Expectation
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("demo/expect.yaml: %w", err)
	}
	return all, nil
}
