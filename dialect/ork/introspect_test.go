package ork_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/flow"
)

const inspected = `name: inspected
introspect: true
tasks:
  rows:
    executor: python
    file: tasks.py
    function: rows
    output_type: [int]
  same:
    executor: python
    file: tasks.py
    function: load
    depends_on: [rows]
    input_type: {rows: [int], at: datetime_notz, share: int}
    inputs: {rows: {ref: tasks.rows.output}, at: {const: "2026-01-01T00:00:00"}, share: {const: 1}}
  other:
    executor: python
    file: tasks.py
    function: load
    depends_on: [rows]
    input_type: {rows: [int], when: str, share: str}
    inputs: {rows: {ref: tasks.rows.output}, when: {const: x}, share: {const: x}}
    output_type: str
  whole:
    executor: python
    file: tasks.py
    function: whole
    input_type: {x: int}
    inputs: {x: {const: 1}}
  gone:
    executor: python
    file: tasks.py
    function: lod
  broken:
    executor: python
    module: broken
  shell: {executor: process, command: ls}
`

// theirs returns the signatures of a file with the functions rows, load and whole.
func theirs(p *flow.Program) (s ork.Signatures, err error) {
	if p.Module == "broken" {
		return s, errors.New("no module named broken")
	}
	return s, json.Unmarshal([]byte(`{"types":{"Row":{"id":"int"},"Node":{"next":"types.Node"}},"functions":{
		"rows":{"input_type":{},"required":[],"output_type":["int"]},
		"load":{"input_type":{"rows":["int"],"at":"datetime_tz","share":"float","odd":null},"required":["rows","at"],"output_type":"int"},
		"whole":{"input_type":{"of":"types.Node"},"required":["of"],"output_type":null}}}`), &s)
}

func TestTasksAreComparedWithTheSignaturesOfTheirFunctions(t *testing.T) {
	asked := 0
	w, problems := ork.Translate([]byte(inspected), ork.Options{Inspect: func(p *flow.Program) (ork.Signatures, error) {
		asked++
		return theirs(p)
	}})
	require.NoError(t, problems.Err())
	require.NotNil(t, w.Definition)
	require.Equal(t, 2, asked, "each file is asked once")
	var told []string
	for _, p := range problems {
		told = append(told, p.Path+": "+p.Msg)
	}
	require.ElementsMatch(t, []string{
		"tasks.other.inputs: the function load wants at, which inputs do not give it",
		"tasks.other.inputs.when: the function load takes no when, so it is left out",
		"tasks.other.inputs.share: the function load takes float, the task says str",
		"tasks.other.output_type: the function load returns int, the task says str",
		"tasks.gone.function: there is no function lod: did you mean load?",
		"tasks.broken: what the function main takes could not be told: no module named broken",
	}, told)
}

func TestFunctionsAreInspectedOnlyOnRequest(t *testing.T) {
	asked := ork.Options{Inspect: func(*flow.Program) (ork.Signatures, error) {
		require.Fail(t, "it was asked")
		return ork.Signatures{}, nil
	}}
	for _, text := range []string{
		"name: a\ntasks: {a: {executor: python, file: a.py}}",
		"name: a\nintrospect: false\ntasks: {a: {executor: python, file: a.py}}",
		"name: a\nintrospect: true\ntasks: {a: {executor: python, file: a.py}, b: {executor: none}}",
	} {
		ork.Translate([]byte(text), asked)
	}
}

func TestSkippedIntrospectionIsReported(t *testing.T) {
	_, problems := ork.Translate([]byte("name: a\nintrospect: true\ntasks: {a: {executor: python, file: a.py}}"), ork.Options{})
	require.NoError(t, problems.Err())
	require.Contains(t, problems.Error(), "introspect: is not done here")
}
