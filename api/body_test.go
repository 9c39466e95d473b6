package api

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func bodyOf(t *testing.T, text string) *graphBody {
	t.Helper()
	b, err := readBody(httptest.NewRequest("POST", "/", strings.NewReader(text)))
	require.NoError(t, err)
	return b
}

func TestNamesOfFields(t *testing.T) {
	for _, name := range []string{"FlowID", "flowid", "flowId", "flow_id", "FLOW_ID"} {
		require.Equal(t, "f", bodyOf(t, `{"`+name+`":"f"}`).text("FlowID"), name)
	}
	require.Empty(t, bodyOf(t, `{"flow":"f"}`).text("FlowID"))
}

func TestWrongFieldsAreSkipped(t *testing.T) {
	b := bodyOf(t, `{"FlowID":"f","Version":"two","Status":7,"services":["a",1],"extra":{}}`)
	require.Equal(t, "f", b.text("FlowID"))
	require.False(t, b.bad)
	require.Zero(t, b.number("Version"))
	require.Empty(t, b.text("Status"))
	require.True(t, b.bad)
	for name, text := range map[string]string{"no JSON": "nope", "nothing": "", "a list": "[1]", "a number": "1"} {
		b := bodyOf(t, text)
		require.True(t, b.bad, name)
		require.Empty(t, b.text("FlowID"), name)
	}
	require.False(t, bodyOf(t, `{"FlowID":null}`).bad)
}

func TestDocumentsMayBeTextOrJSON(t *testing.T) {
	require.Equal(t, `{ "a":1 }`, bodyOf(t, `{"ParamsJSON":"{ \"a\":1 }"}`).document("ParamsJSON"))
	require.Equal(t, `{"a": 1}`, bodyOf(t, `{"ParamsJSON":{"a": 1}}`).document("ParamsJSON"))
	require.Empty(t, bodyOf(t, `{"ParamsJSON":5}`).document("ParamsJSON"))
}

func TestPaging(t *testing.T) {
	for query, want := range map[string][2]int{
		"": {1, 10}, "page=3&page_size=7": {3, 7}, "page=-1&page_size=abc": {1, 10}, "page=0&page_size=0": {1, 10},
		"page_size=100000000": {1, maxPageSize}, "page=9223372036854775807": {1, 10},
	} {
		page, size := paging(httptest.NewRequest("GET", "/?"+query, nil))
		require.Equal(t, want, [2]int{page, size}, query)
	}
}
