// Package define builds definitions in Go.
//
// A Builder has a method for each field of a flow, and a NodeBuilder has a method for each field of
// a node. JSON and Definition report the first mistake, so calls can be chained.
//
// Reading order: build.go builds flows, build_node.go nodes, build_kinds.go the kinds of nodes.
package define
