// Package define reads definitions: flows written in JSON, YAML or Go.
//
// It knows the fields of a definition but not their meaning: package compile checks that, and adds
// its findings to the same Problems. Reading continues after a problem, so all problems are
// reported at once, each with its position in the text. A definition with embedded flows
// (Embedding) is complete, and does not change when those flows get new versions.
//
// Reading order: definition.go and definition_dag.go contain the fields, parse.go reads them,
// problem.go reports problems; embed.go and build.go do the rest.
package define
