package flows_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
)

var update = flag.Bool("update", false, "write the tables of fields anew")

// Markers of the tables in the reference.
const (
	tablesBegin = "<!-- generated from definition/fields.go by go generate -->\n"
	tablesEnd   = "<!-- end of what is generated -->\n"
)

func TestTheTablesOfFieldsAreUpToDate(t *testing.T) {
	text := reference(t)
	head, rest, found := strings.Cut(text, tablesBegin)
	require.True(t, found)
	_, tail, found := strings.Cut(rest, tablesEnd)
	require.True(t, found)
	made := head + tablesBegin + "\n" + nodeTable() + "\n" + flowTable() + "\n" + overrideTable() + "\n" + tablesEnd + tail
	if *update {
		require.NoError(t, os.WriteFile("../../docs/reference/flows.md", []byte(made), 0o644))
		return
	}
	require.Equal(t, made, text, "the tables of fields are out of date: run go generate")
}

// nodeTable lists the kinds that use each field of a node.
func nodeTable() string {
	var b strings.Builder
	b.WriteString("| field of a node | kinds of a graph | kinds of a dag |\n|---|---|---|\n")
	for _, f := range definition.NodeFields {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, kindsCell(f.Graph), kindsCell(f.Dag))
	}
	return b.String()
}

// kindsCell lists the kinds of a rule, grouped by conditions.
func kindsCell(r definition.Rule) string {
	var order []string                // order of the conditions
	conditions := map[string]string{} // by kind
	kinds := []string{}
	for word := range strings.FieldsSeq(r.Kinds) {
		kind, condition, _ := strings.Cut(word, ":")
		text := definition.Conditions[condition]
		if before, again := conditions[kind]; again {
			text = before + " or " + text
		} else {
			kinds = append(kinds, kind)
		}
		conditions[kind] = text
	}
	groups := map[string][]string{}
	for _, kind := range kinds {
		text := conditions[kind]
		if !slices.Contains(order, text) {
			order = append(order, text)
		}
		groups[text] = append(groups[text], kind)
	}
	var parts []string
	for _, text := range order {
		part := strings.Join(groups[text], ", ")
		if text != "" {
			part += " (" + text + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// flowTable lists the flows that use each field of a flow.
func flowTable() string {
	var b strings.Builder
	b.WriteString("| field of a flow | graph | dag |\n|---|---|---|\n")
	for _, f := range definition.FlowFields {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f.Graph, f.Dag)
	}
	return b.String()
}

// overrideTable lists the lists whose entries use each field of an override.
func overrideTable() string {
	var b strings.Builder
	b.WriteString("| field of an override | lists |\n|---|---|\n")
	for _, f := range definition.OverrideFields {
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", f.Name, strings.Join(strings.Fields(f.Lists), "`, `"))
	}
	return b.String()
}
