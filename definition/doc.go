// Package definition reads definitions: flows written in JSON or YAML. Package define builds them
// in Go, compile gives them their meaning, and show renders it.
//
// It knows the fields of a definition but not their meaning: package compile checks that, and adds
// its findings to the same Problems. Reading continues after a problem, so all problems are
// reported at once, each with its position in the text. A definition with embedded flows
// (Embedding) is complete, and does not change when those flows get new versions.
//
// Reading order: definition.go and definition_dag.go contain the fields, parse.go reads them,
// problem.go reports problems; embed.go does the rest.
package definition
