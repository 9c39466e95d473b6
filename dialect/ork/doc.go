// Package ork reads workflow files of Ork and translates them into definitions of Troupe.
//
// Promises: Translate reports all problems of a file with their places and, if Ork has a message
// for a problem, with that message. A workflow without errors becomes a definition of dag mode with
// `profile: ork` that has the meaning of the workflow in Ork. Names are kept: a task named a-b
// becomes a node with the key a_b and the name a-b. Equal files, together with the files beside
// them, give equal definitions, wherever they are stored. The caller decides where files are
// searched, and how functions are inspected (Options).
//
// Reading order: ork.go is the public interface; read.go and task.go read a file; names.go,
// graph.go, types.go and bindings.go check it; settings.go, workers.go and dbt.go read the files
// beside it; definition.go writes the translation. replicated.go handles the other form of
// workflow, which has no graph. signatures.go writes the types of Python functions in the words of
// such files, and introspect.go compares tasks with them.
package ork
