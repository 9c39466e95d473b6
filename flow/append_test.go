package flow

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnAppendedItemIsOneValue(t *testing.T) {
	tb := newTable(t, planOf(t, "nodes: {f: {route: direct, each: {count: 1}}}"))
	_, err := tb.do(Start{})
	require.NoError(t, err)
	at := Address{Node: "f", Visit: 1}
	for _, bad := range []string{"1,2", "]", "{", "1]  ,[2"} {
		_, err = tb.do(Append{Address: at, Items: []json.RawMessage{json.RawMessage("0"), json.RawMessage(bad)}})
		require.EqualError(t, err, "items[1] is not valid JSON")
	}
	_, err = tb.do(Append{Address: at, Items: []json.RawMessage{nil, json.RawMessage(` [1, 2]`)}})
	require.NoError(t, err)
	require.Len(t, tb.direct(), 3)
}
