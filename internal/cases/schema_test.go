package cases_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/internal/cases"
)

// schemaOf compiles the schema of case files.
func schemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(cases.Schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("cases.json", doc))
	s, err := c.Compile("cases.json")
	require.NoError(t, err)
	return s
}

// value returns a case file as editors see it.
func value(t *testing.T, text string) any {
	t.Helper()
	b, err := definition.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	require.NoError(t, err)
	return v
}

// TestTheSchemaKnowsTheFieldsThatTheReaderKnows writes an unknown field into each kind of object;
// the reader's error lists the known ones.
func TestTheSchemaKnowsTheFieldsThatTheReaderKnows(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]any
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(cases.Schema, &schema))
	for kind, text := range map[string]string{
		"File": "0QQ: 1", "Case": "cases: [{0QQ: 1}]", "Answer": "mocks: {ship: {0QQ: 1}}",
		"Act": "at: {1d: {0QQ: 1}}", "Expectation": "expect: {0QQ: 1}",
		"Calls": "expect: {calls: {ship: {0QQ: 1}}}", "Input": "expect: {calls: {ship: [{0QQ: 1}]}}", "Took": "expect: {took: {0QQ: 1}}",
		"Never": "never: {0QQ: 1}", "Errors": "faults: {0QQ: 1}",
	} {
		dir := in(t, map[string]string{"order.yaml": orderFlow, "order.test.yaml": text})
		_, err := cases.Open(filepath.Join(dir, "order.test.yaml"), "")
		require.Error(t, err, kind)
		told := regexp.MustCompile(`unknown field of .*: 0QQ: there are (.*)`).FindStringSubmatch(err.Error())
		require.NotNil(t, told, "%s: %v", kind, err)
		require.Equal(t, strings.Split(told[1], ", "), slices.Sorted(maps.Keys(schema.Defs[kind].Properties)), kind)
	}
}

func TestTheSchemaAcceptsCaseFilesAndRejectsMistakes(t *testing.T) {
	s := schemaOf(t)
	for name, text := range map[string]string{
		"the example": readText(t, "../../examples/ordertest/order.test.yaml"),
		"docs": written(t, "../../docs/how-to/test-flows.md",
			"name: a card that is declined twice"), "graph": graphCases,
		"happy": happy + "expect: {took: {min: 1d, max: 2w3d}}\nalways: state == 'completed'\n",
	} {
		require.NoError(t, s.Validate(value(t, text)), name)
	}
	for _, text := range []string{
		"expect: {state: failed}", "name: a\nexpect: {stat: failed}",
		"name: a\nexpect: {state: complete}", "name: a\nmocks: {charge: 7}", "name: a\nat: {2x: cancel}",
		"name: a\nat: {2d: cancle}", "name: a\nfaults: [orders]", "name: a\nnever: {cal: ship}",
		"name: a\ncases: [{name: b}]", "name: a\nexpect: {calls: {ship: -1}}", "- a",
	} {
		require.Error(t, s.Validate(value(t, text)), text)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}
