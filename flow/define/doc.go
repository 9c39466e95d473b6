// Package define reads definitions: flows as people write them, in JSON, in YAML, or in Go.
//
// It knows what a definition can say, not what it means: that is told by package compile, which
// goes on with the same Problems. Reading goes on after a problem, so that all of them are told at
// once, each with its place in the text. A definition that embeds published flows says all by
// itself (Embedding), and stays what it is when those flows get other versions.
//
// Reading order: definition.go and definition_dag.go are what can be said, parse.go how it is read,
// problem.go how problems are told, embed.go and build.go the rest.
package define
