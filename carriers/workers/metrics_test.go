package workers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/persistence"
)

func TestWorkersAreCountedByStateAndService(t *testing.T) {
	var c clock
	c.Store(1000)
	r := open(t, newStore(t), workers.Options{Now: c.Load})
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "silent", URL: "queue", Type: "async", Services: []string{"mail"}}))
	c.pass(time.Minute)
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "one", URL: "queue",
		Type: "async", Services: []string{"mail", "mail", "ship"}}))
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "two", URL: "http://127.0.0.1:1", Services: []string{"mail"}}))
	require.Equal(t, []string{"troupe_service_workers mail 2", "troupe_service_workers ship 1",
		"troupe_workers offline 1", "troupe_workers online 2"}, told(t, r))
}

func TestServicesBeyondTheFirstAreCountedTogether(t *testing.T) {
	r := open(t, newStore(t), workers.Options{Now: time.Now().UnixMilli})
	for i := range 5 {
		services := make([]string, 50)
		for k := range services {
			services[k] = fmt.Sprintf("s%d.%02d", i, k)
		}
		require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: fmt.Sprint(i), URL: "queue", Type: "async", Services: services}))
	}
	all := told(t, r)
	require.Len(t, all, 201+2)
	require.Contains(t, all, "troupe_service_workers other 50")
}

// told returns the metrics, each as its name, the value of its label and its value.
func told(t *testing.T, r *workers.Registry) (lines []string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.Collectors()...)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			lines = append(lines, strings.TrimSpace(fmt.Sprintln(f.GetName(), m.GetLabel()[0].GetValue(), m.GetGauge().GetValue())))
		}
	}
	return lines
}
