package metrics

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestNamesOfNumbersAreBounded(t *testing.T) {
	var all jobNumbers
	for i := range 5_000 {
		all.addReported(json.RawMessage(fmt.Sprintf(`[{"name":"m%d","count":2,"sum":0.5}]`, i)))
	}
	all.addReported(json.RawMessage(`[{"name":"m7","count":1,"sum":1,"last":1,"labels":{"a":"b"}}]`))
	require.Len(t, all.names, maxNames+1)
	require.Equal(t, numberTotal{3, 1.5}, *all.names["m7"])
	require.Equal(t, numberTotal{8_000, 2_000}, *all.names[otherNames])
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(&all))
	found, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, found[0].GetMetric(), maxNames+1)
}

func TestInvalidNumbersAreNotCounted(t *testing.T) {
	var all jobNumbers
	for _, list := range []string{"", "null", "[]", "{}", `["a"]`, `[{"name":1}]`,
		`[{"name":"a","count":-1,"sum":1}]`, `[{"name":"a","count":1,"sum":1e999}]`} {
		all.addReported(json.RawMessage(list))
	}
	all.addReported(json.RawMessage(`[{"name":"a","count":1,"sum":1e308},{"name":"a","count":1,"sum":1e308}]`))
	require.Equal(t, numberTotal{1, 1e308}, *all.names["a"])
}
