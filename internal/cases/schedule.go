package cases

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Written returns the text of a schedule: a list of entries such as {late: charge, by: 1h}.
func Written(s rehearse.Schedule) string {
	var b strings.Builder
	for _, f := range s {
		fmt.Fprintf(&b, "- {%s: %q", f.Kind, f.At)
		if f.By > 0 {
			fmt.Fprintf(&b, ", by: %s", rehearse.Span(f.By))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

var faultKinds = []rehearse.FaultKind{rehearse.FaultLate, rehearse.FaultEarly, rehearse.FaultTwice,
	rehearse.FaultCrash, rehearse.FaultLost, rehearse.FaultRestart, rehearse.FaultError, rehearse.FaultDown}

// ReadSchedule parses the text of Written. An empty text is a schedule without faults.
func ReadSchedule(text []byte) (rehearse.Schedule, definition.Problems) {
	r := &caseReader{reader: &reader{}}
	all := rehearse.Schedule{}
	for _, doc := range r.readDocuments(text) {
		r.checkTags(doc)
		if !r.expectKind(doc, yaml.SequenceNode, "a schedule") {
			break
		}
		for _, n := range listElements(doc) {
			f := rehearse.Fault{}
			known := map[string]func(*yaml.Node){"by": func(n *yaml.Node) { f.By = r.readSpan(n, "by") }}
			for _, kind := range faultKinds {
				known[string(kind)] = func(n *yaml.Node) { f.Kind, f.At = kind, r.readText(n, string(kind)) }
			}
			r.readFields(n, "a fault", known)
			if f.Kind == "" {
				r.reportError(n, "the fault says not what happens: begin with %s", strings.Join(kindWords(), ", "))
			}
			all = append(all, f)
		}
	}
	return all, r.problems
}

func kindWords() (words []string) {
	for _, kind := range faultKinds {
		words = append(words, string(kind))
	}
	return words
}
