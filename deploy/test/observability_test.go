package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const observability = "../observability/"

// members returns the metrics of a member with their labels. A test of the program verifies the
// list.
func members(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(observability + "metrics.txt")
	require.NoError(t, err)
	known := map[string][]string{"up": nil, "process_resident_memory_bytes": nil}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "{")
		labels, kind, _ := strings.Cut(rest, "}")
		names := strings.Split(labels, ",")
		if !strings.HasPrefix(kind, " histogram ") {
			known[name] = names
			continue
		}
		known[name+"_count"], known[name+"_sum"], known[name+"_bucket"] = names, names, append(slices.Clone(names), "le")
	}
	return known
}

// ofEach are the labels added by the scraper to each metric.
var ofEach = []string{"job", "instance"}

// checkExpr fails if an expression is invalid, or uses an unknown metric or label.
func checkExpr(t *testing.T, text string) {
	t.Helper()
	known := members(t)
	expr, err := parser.ParseExpr(text)
	require.NoError(t, err, text)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			require.Contains(t, known, n.Name, text)
			for _, m := range n.LabelMatchers {
				if m.Name != "__name__" && m.Name != "job" && m.Name != "instance" {
					require.Contains(t, known[n.Name], m.Name, text)
				}
			}
		case *parser.AggregateExpr:
			for _, label := range n.Grouping {
				requireLabel(t, known, n.Expr, label, text)
			}
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				for _, label := range n.VectorMatching.MatchingLabels {
					requireLabel(t, known, n.LHS, label, text)
					requireLabel(t, known, n.RHS, label, text)
				}
			}
		}
		return nil
	})
}

// requireLabel fails unless every metric of a part of an expression has a label.
func requireLabel(t *testing.T, known map[string][]string, part parser.Node, label, text string) {
	t.Helper()
	if label == "instance" || label == "job" {
		return
	}
	parser.Inspect(part, func(node parser.Node, _ []parser.Node) error {
		if n, ok := node.(*parser.VectorSelector); ok {
			require.Contains(t, known[n.Name], label, "%s has no label %s: %s", n.Name, label, text)
		}
		return nil
	})
}

func TestAlertsUseExistingMetrics(t *testing.T) {
	groups, errs := rulefmt.ParseFile(observability+"alerts.yaml", false)
	require.Empty(t, errs)
	require.NotEmpty(t, groups.Groups)
	link := regexp.MustCompile(`https://troupe\.example/ui/(\S|\{\{ \S+ \}\})+$`)
	for _, g := range groups.Groups {
		require.NotEmpty(t, g.Rules, g.Name)
		for _, rule := range g.Rules {
			checkExpr(t, rule.Expr)
			require.Contains(t, []string{"page", "warn"}, rule.Labels["severity"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			require.Regexp(t, link, rule.Annotations["runbook"], rule.Alert)
			for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(
				rule.Annotations["summary"]+rule.Annotations["runbook"], -1) {
				require.Contains(t, remaining(t, rule.Expr), label[1], rule.Alert)
			}
		}
	}
}

// remaining returns the labels in the results of an expression.
func remaining(t *testing.T, text string) []string {
	t.Helper()
	expr, err := parser.ParseExpr(text)
	require.NoError(t, err)
	left := append(slices.Clone(ofEach), "le")
	aggregated := false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if n, ok := node.(*parser.AggregateExpr); ok {
			if !aggregated {
				left = nil
			}
			aggregated = true
			left = append(left, n.Grouping...)
		}
		return nil
	})
	return left
}

func TestTheDashboardUsesExistingMetrics(t *testing.T) {
	text, err := os.ReadFile(observability + "grafana-troupe.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			ID          int
			Type, Title string
			Targets     []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	known, asked, ids := members(t), 0, map[int]bool{}
	variables := strings.NewReplacer("$__rate_interval", "5m")
	for _, p := range dashboard.Panels {
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		for _, target := range p.Targets {
			checkExpr(t, variables.Replace(target.Expr))
			for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				require.Contains(t, remaining(t, variables.Replace(target.Expr)), label[1], p.Title)
			}
			asked++
		}
	}
	require.Greater(t, asked, 20)
	for _, v := range dashboard.Templating.List {
		if query, ok := v.Query.(map[string]any); ok {
			of := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(query["query"].(string))
			require.Contains(t, known, of[1])
			require.Contains(t, append(slices.Clone(known[of[1]]), ofEach...), of[2])
		}
	}
}

func TestPipelinesOfTheCollectorAreWhole(t *testing.T) {
	text, err := os.ReadFile(observability + "otel-collector.yaml")
	require.NoError(t, err)
	var collector struct {
		Receivers, Processors, Exporters map[string]any
		Service                          struct {
			Pipelines map[string]struct{ Receivers, Processors, Exporters []string }
		}
	}
	require.NoError(t, yaml.UnmarshalStrict(text, &collector))
	used := map[string]bool{}
	for name, p := range collector.Service.Pipelines {
		for kind, of := range map[string]struct {
			used    []string
			defined map[string]any
		}{"receiver": {p.Receivers, collector.Receivers},
			"processor": {p.Processors, collector.Processors},
			"exporter":  {p.Exporters, collector.Exporters}} {
			require.NotEmpty(t, of.used, name)
			for _, x := range of.used {
				require.Contains(t, of.defined, x, "%s of pipeline %s", kind, name)
				used[x] = true
			}
		}
	}
	require.Len(t, used, len(collector.Receivers)+len(collector.Processors)+len(collector.Exporters), "each is used")
}
