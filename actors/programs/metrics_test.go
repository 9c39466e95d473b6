package programs

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/program"
)

func TestNamesOfMetricsAreBounded(t *testing.T) {
	var all Told
	all.Add(nil)
	for i := range 5_000 {
		all.Add([]program.Metric{{Name: fmt.Sprintf("m%d", i), Count: 2, Sum: 0.5}})
	}
	all.Add([]program.Metric{{Name: "m7", Count: 1, Sum: 1}})
	require.Len(t, all.names, maxNames+1)
	require.Equal(t, total{3, 1.5}, *all.names["m7"])
	require.Equal(t, total{8_000, 2_000}, *all.names[otherNames])
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(&all))
	found, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, found[0].GetMetric(), maxNames+1)
}
