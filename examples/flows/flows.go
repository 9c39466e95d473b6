// Package flows holds example flows, one for each thing that flows can do, and what tasks of them
// end as. They need only the services of the demo workers and scripts. Play carries out one such
// task.
//
//go:generate go test -count=1 -run TestTheTablesOfFieldsAreUpToDate . -args -update
package flows

import (
	"embed"
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow/define"
)

// Files are the flows, 01-… to 25-….
//
//go:embed *.yaml
var Files embed.FS

// What is expected of them is in a folder of its own: whoever publishes all files here wants flows
// only.
//
//go:embed demo/expect.yaml
var expect []byte

// Expectation is one entry of demo/expect.yaml: a task, what is done to it, and how it must end.
// What it does not say about the end is not looked at.
type Expectation struct {
	File     string          `json:"file"`
	Params   json.RawMessage `json:"params"` // object, or nil
	Input    json.RawMessage `json:"input"`  // the same for a dag: any JSON
	Signals  []Signal        `json:"signals"`
	Complete []Completion    `json:"complete"`

	State   string            `json:"state"`
	Error   string            `json:"error"`   // a part of it
	Shared  json.RawMessage   `json:"shared"`  // all of it, at the end
	Result  json.RawMessage   `json:"result"`  // the same
	Steps   map[string]string `json:"steps"`   // how these ended, by slug; "" = not at all
	Closing []string          `json:"closing"` // what undid and cleaned up, in that order
}

// Signal is to be sent some time after the start of its task.
type Signal struct {
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	AfterMS int             `json:"after_ms"`
}

// Completion ends a unit whose route is direct, as soon as its step has begun: with an output or an
// error.
type Completion struct {
	Step   string          `json:"step"`
	Unit   int             `json:"unit"`
	Output json.RawMessage `json:"output"`
	Error  string          `json:"error"`
}

// Expectations reads demo/expect.yaml.
func Expectations() ([]Expectation, error) {
	raw, err := define.YAMLToJSON(expect)
	if err != nil {
		return nil, fmt.Errorf("demo/expect.yaml: %w", err)
	}
	var all []Expectation
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("demo/expect.yaml: %w", err)
	}
	return all, nil
}
