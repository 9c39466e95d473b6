package troupe

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/certtest"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

var update = flag.Bool("update", false, "write deploy/observability/metrics.txt anew")

// listed is the list of all metrics of a member with their labels, types and help. Checks of
// dashboards and alerts, and the reference of metrics, use it.
const listed = "deploy/observability/metrics.txt"

func TestAllMetricsOfAMemberAreListed(t *testing.T) {
	own := certtest.New(t).Issue(t)
	e := join(t, Config{Store: pgtest.DSN(t), Name: "a", Listen: freeAddress(t), TLSCert: own.Cert,
		TLSKey: own.Key, Spans: &sink{}, NodeMetrics: true})
	asked, err := e.Member(t.Context())
	require.NoError(t, err)
	server, err := e.newServer(asked)
	require.NoError(t, err)
	var lines []string
	for _, c := range server.Collectors() {
		lines = append(lines, described(c)...)
	}
	slices.Sort(lines)
	text := strings.Join(slices.Compact(lines), "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(listed, []byte(text), 0o644))
	}
	before, err := os.ReadFile(listed)
	require.NoError(t, err)
	require.Equal(t, string(before), text, "go test -run %s . -update writes it anew", t.Name())
}

var descText = regexp.MustCompile(`fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"), .*constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}`)

// described returns a line for each metric of a collector: name, labels in braces, type, and help.
func described(c prometheus.Collector) (lines []string) {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for d := range descs {
		of := descText.FindStringSubmatch(d.String())
		if of == nil || !strings.HasPrefix(of[1], "troupe_") {
			continue // metrics of Go and of the process are not ours
		}
		var labels []string
		for _, label := range strings.Split(of[3]+","+of[4], ",") {
			if name, _, _ := strings.Cut(label, "="); name != "" {
				labels = append(labels, name)
			}
		}
		help, err := strconv.Unquote(of[2])
		if err != nil {
			panic(err) // the text of Desc.String has changed
		}
		lines = append(lines, of[1]+"{"+strings.Join(labels, ",")+"} "+metricType(of[1], c)+" "+help)
	}
	return lines
}

// metricType returns the type of a metric, which its name and its collector show.
func metricType(name string, c prometheus.Collector) string {
	of := strings.ToLower(fmt.Sprintf("%T", c))
	switch {
	case strings.Contains(of, "histogram"):
		return "histogram"
	case name == "troupe_job_metric":
		return "summary"
	case strings.HasSuffix(name, "_total"):
		return "counter"
	}
	return "gauge"
}
