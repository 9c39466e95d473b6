//go:build unix

package main

import (
	"fmt"
	"strings"
)

// dagChain measures nodes in sequence.
func (b *benchRun) dagChain() error {
	nodes := b.o.steps
	var d strings.Builder
	d.WriteString("mode: dag\nnodes:\n")
	for i := 1; i <= nodes; i++ {
		if i == 1 {
			fmt.Fprintf(&d, "  s1: {%s, prep: {input_key: $run.p}}\n", b.execSpec())
			continue
		}
		fmt.Fprintf(&d, "  s%d: {%s, depends_on: [s%d], prep: {input_key: $deps.s%d}}\n", i, b.execSpec(), i-1, i-1)
	}
	return b.measureDag("dagchain", d.String(), nodes)
}

// measureDiamond measures a first node, then all middle nodes at once, then a last node that
// depends on the middle nodes.
func (b *benchRun) measureDiamond() error {
	nodes := b.o.steps
	var d, all strings.Builder
	fmt.Fprintf(&d, "mode: dag\nnodes:\n  first: {%s, prep: {input_key: $run.p}}\n", b.execSpec())
	for i := 1; i <= nodes-2; i++ {
		fmt.Fprintf(&d, "  m%d: {%s, depends_on: [first], prep: {input_key: $deps.first}}\n", i, b.execSpec())
		fmt.Fprintf(&all, "m%d,", i)
	}
	fmt.Fprintf(&d, "  last: {%s, depends_on: [%s], prep: {input_key: $deps.m1}}\n", b.execSpec(), strings.TrimSuffix(all.String(), ","))
	return b.measureDag("diamond", d.String(), nodes)
}

// dagFanout measures a fanout of -width units with at most 100 units in flight.
func (b *benchRun) dagFanout() error {
	definition := fmt.Sprintf("mode: dag\nnodes:\n  each: {%s, each: {items: $run.list, concurrency: 100}}\n", b.execSpec())
	if err := b.publishFlow("dagfanout", definition); err != nil {
		return err
	}
	list := make([]int, b.o.width)
	for i := range list {
		list[i] = i
	}
	return b.measureTasks("dagfanout", b.o.width, func(int) any { return map[string]any{"list": list} })
}

func (b *benchRun) measureDag(slug, definition string, nodes int) error {
	if err := b.publishFlow(slug, definition); err != nil {
		return err
	}
	return b.measureTasks(slug, nodes, func(i int) any { return map[string]any{"p": newPayload(fmt.Sprint("d", i))} })
}
