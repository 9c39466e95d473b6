package troupe

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/certtest"
	"github.com/troupe-engine/troupe/internal/pgtest"
)

var update = flag.Bool("update", false, "write deploy/observability/metrics.txt anew")

// listed is the list of all metrics of a member, which checks of dashboards and alerts use.
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

var descText = regexp.MustCompile(`fqName: "([^"]*)".*constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}`)

// described returns the metrics of a collector with their label names in braces; histograms are
// marked.
func described(c prometheus.Collector) (lines []string) {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	kind := ""
	if strings.HasSuffix(strings.ToLower(fmt.Sprintf("%T", c)), "histogram") || strings.HasSuffix(fmt.Sprintf("%T", c), "HistogramVec") {
		kind = " histogram"
	}
	for d := range descs {
		of := descText.FindStringSubmatch(d.String())
		if of == nil || !strings.HasPrefix(of[1], "troupe_") {
			continue // metrics of Go and of the process are not ours
		}
		var labels []string
		for _, label := range strings.Split(of[2]+","+of[3], ",") {
			if name, _, _ := strings.Cut(label, "="); name != "" {
				labels = append(labels, name)
			}
		}
		lines = append(lines, of[1]+"{"+strings.Join(labels, ",")+"}"+kind)
	}
	return lines
}
