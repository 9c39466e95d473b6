package attack

import (
	"fmt"
	"strings"
)

// Attacks by definitions.
var onDefinitions = []attack{
	{name: "six validations of 7 MB of YAML at once", strike: largeValidations},
	{name: "12 definitions of 3.7 MB", strike: largeDefinitions},
	{name: "a flow embedded 100 times", strike: embeddings},
	{name: "aliases, depth and what looks like a definition", strike: bombs},
}

// wide returns a definition of many nodes, of about the given size.
func wide(bytes int) yaml {
	var d strings.Builder
	d.WriteString("start: n0\nnodes:\n")
	for i := 0; d.Len() < bytes; i++ {
		fmt.Fprintf(&d, "  n%d: {exec_type: queue, service: nobody, params: {a: %d, list: [1, 2, 3, 4, 5, 6, 7, 8, 9]}}\n", i, i)
	}
	return yaml(d.String())
}

func largeValidations(a *attacker) {
	size := a.of(1_500_000, 7_000_000)
	var list strings.Builder
	list.WriteString("start: a\nnodes:\n  a:\n    kind: choice\n    params:\n      list: [0")
	for list.Len() < size {
		list.WriteString(", 1")
	}
	list.WriteString("]\n")
	bodies := []yaml{yaml(list.String()), wide(size), yaml("a: [" + strings.Repeat("{b: 1},", size/8) + "]")}
	a.each(a.of(6, 18), 6, func(i int) { a.send("POST", "/v1/validate", bodies[i%len(bodies)]) })
}

func largeDefinitions(a *attacker) {
	size := a.of(300_000, 3_700_000)
	for i := range a.of(4, 12) {
		flow := fmt.Sprintf("wide-%d", i)
		if a.publish(flow, wide(size+i)) {
			a.start(flow, nil)
		}
	}
}

func embeddings(a *attacker) {
	inner := strings.ReplaceAll(string(wide(120_000)), "start: n0\n", "start: n0\nname: inner\n")
	a.publish("inner", yaml(inner))
	var outer strings.Builder
	outer.WriteString("start: n0\nnodes:\n")
	for i := range 100 {
		fmt.Fprintf(&outer, "  n%d: {kind: subflow, flow: %s}\n", i, a.name("inner"))
	}
	a.atOnce(4, func(i int) {
		if i%2 == 0 {
			a.send("POST", "/v1/validate", yaml(outer.String()))
			return
		}
		a.send("PUT", "/v1/flows/"+a.name("outer"), yaml(outer.String()))
	})
}

func bombs(a *attacker) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [l, l, l, l, l, l, l, l, l, l]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	deep := strings.Repeat("{a: ", 20_000) + "1" + strings.Repeat("}", 20_000)
	a.atOnce(a.of(2, 8), func(int) {
		for _, text := range []string{laughs.String(), deep, string(nested(100_000)),
			"start: a\nnodes: {a: {params: " + deep + "}}", "\x00", "&a [*a]",
			strings.Repeat("- ", 100_000)} {
			a.send("POST", "/v1/validate", yaml(text))
			a.send("PUT", "/v1/flows/"+a.name("bomb"), yaml(text))
		}
		a.send("POST", "/v1/tasks", nested(100_000))
		a.send("POST", "/api/queue/poll", nested(100_000))
		a.send("POST", "/api/flows/"+a.name("bomb")+"/ensure", obj{"definition": nestedObject(9_000)})
	})
}
