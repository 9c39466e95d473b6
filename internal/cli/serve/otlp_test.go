package serve

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

func TestTheSamplerIsReadLikeOpenTelemetry(t *testing.T) {
	for _, c := range []struct {
		name, arg string
		ratio     float64
		alone     bool
	}{
		{"", "", 0, false}, {"always_on", "", 1, true}, {"parentbased_always_on", "", 1, false}, {"always_off", "", -1, true},
		{"parentbased_traceidratio", "0.25", 0.25, false}, {"traceidratio", "0", -1, true}, {"traceidratio", "", 1, true},
	} {
		ratio, alone, err := parseSampler(c.name, c.arg)
		require.NoError(t, err)
		require.Equal(t, c.ratio, ratio, c)
		require.Equal(t, c.alone, alone, c)
	}
	for _, c := range [][2]string{{"sometimes", ""}, {"traceidratio", "2"}, {"parentbased_traceidratio", "half"}} {
		_, _, err := parseSampler(c[0], c[1])
		require.ErrorAs(t, err, new(console.UsageError), c)
	}
}

func TestSpansAreSentToTheConfiguredCollector(t *testing.T) {
	require.False(t, isExporting())
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	require.True(t, isExporting())
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	require.False(t, isExporting())
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	require.False(t, isExporting())
}

func TestATaskHasTheAttributesThatTheEnvironmentNames(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "orders")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "zone=a")
	told := map[string]string{}
	for _, a := range buildResource("m").GetAttributes() {
		told[a.GetKey()] = a.GetValue().GetStringValue()
	}
	require.Equal(t, "orders", told["service.name"])
	require.Equal(t, "a", told["zone"])
	require.Equal(t, "m", told["service.instance.id"])
}

func TestTheProtocolOfTracesOverridesTheGeneralOne(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "sometimes")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	var f memberFlags
	require.NoError(t, f.configureTracing(&troupe.Config{}), "nothing is told")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	require.ErrorContains(t, f.configureTracing(&troupe.Config{}), "OTEL_TRACES_SAMPLER")
	t.Setenv("OTEL_TRACES_SAMPLER", "")
	require.ErrorContains(t, f.configureTracing(&troupe.Config{}), "the protocol of the collector is grpc")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
	require.NoError(t, f.configureTracing(&troupe.Config{}))
}
