package compile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestNamesAreBounded(t *testing.T) {
	long := strings.Repeat("n", 1<<20)
	for where, text := range map[string]string{
		"name":                         `{"name":"` + long + `","nodes":{"a":{"service":"s"}}}`,
		"description":                  `{"description":"` + long + `","nodes":{"a":{"service":"s"}}}`,
		"nodes.a.service":              `{"nodes":{"a":{"service":"` + long + `"}}}`,
		"nodes.a.func":                 `{"nodes":{"a":{"func":"` + long + `"}}}`,
		"nodes.a.labels[0]":            `{"nodes":{"a":{"service":"s","labels":["` + long + `"]}}}`,
		"nodes.b.parallel_services[0]": `{"start":"b","nodes":{"b":{"kind":"parallel","parallel_services":["` + long + `"]}}}`,
	} {
		d, err := definition.Parse([]byte(text))
		require.NoError(t, err)
		_, problems := compile.Definition(d, flow.Limits{})
		require.ErrorContains(t, problems.Err(), where)
		require.ErrorContains(t, problems.Err(), "more than the limit of")
		require.Less(t, len(problems.Err().Error()), 1000, "what is too long is not repeated")
	}
	for _, name := range []string{"", "a", strings.Repeat("n", 256)} {
		require.NoError(t, flow.CheckName("the name", name))
	}
	require.ErrorContains(t, flow.CheckName("the name", long), "the name has 1048576 bytes, more than the limit of 256")
	require.ErrorContains(t, flow.CheckName("the name", "\x00"), flow.NoText)
}
