// Package flows holds example flows, one for each feature of flows, and the expected results of
// their tasks. They need only the services of the demo workers and scripts. Play runs one such
// task.
//
//go:generate go test -count=1 -run TestTheTablesOfFieldsAreUpToDate . -args -update
package flows

import (
	"embed"
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/definition"
)

// Files are the flows, 01-… to 25-….
//
//go:embed *.yaml
var Files embed.FS

// The expected results are in a folder of their own, so that this folder contains only flows to be
// published.
//
//go:embed demo/expect.yaml
var expect []byte

// Expectation is one entry of demo/expect.yaml: a task, the actions on it, and its expected end.
// Absent fields are not checked.
type Expectation struct {
	File     string          `json:"file"`
	Params   json.RawMessage `json:"params"` // object, or nil
	Input    json.RawMessage `json:"input"`  // for a dag: any JSON
	Signals  []Signal        `json:"signals"`
	Complete []Completion    `json:"complete"`

	State   string            `json:"state"`
	Error   string            `json:"error"`   // part of the error
	Shared  json.RawMessage   `json:"shared"`  // complete shared values at the end
	Result  json.RawMessage   `json:"result"`  // complete result
	Steps   map[string]string `json:"steps"`   // end of each step, by slug; "" if it did not run
	Closing []string          `json:"closing"` // nodes that undid and cleaned up, in order
}

// Signal is sent some time after the start of its task.
type Signal struct {
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	AfterMS int             `json:"after_ms"`
}

// Completion completes a direct unit as soon as its step has begun, with an output or an error.
type Completion struct {
	Step   string          `json:"step"`
	Unit   int             `json:"unit"`
	Output json.RawMessage `json:"output"`
	Error  string          `json:"error"`
}

// Expectations reads demo/expect.yaml.
func Expectations() ([]Expectation, error) {
	raw, err := definition.YAMLToJSON(expect)
	if err != nil {
		return nil, fmt.Errorf("demo/expect.yaml: %w", err)
	}
	var all []Expectation
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("demo/expect.yaml: %w", err)
	}
	return all, nil
}
