// Package ork reads workflow files of Ork and translates them into definitions of our own.
//
// What it promises: Translate tells everything that is wrong with a file, each with its place in it
// and, where Ork has words for it, in those; a workflow without errors becomes a definition of dag
// mode with `profile: ork` that does what Ork says of it. Names are kept as they were written: a
// task named a-b becomes a node with the key a_b and the name a-b. Equal files give equal
// definitions, wherever they lie, and the files beside them that say something, too; where files
// are looked for, and who asks functions what they take, is up to whoever asks (Options).
//
// Reading order: ork.go is what others see, read.go and task.go read a file, names.go, graph.go,
// types.go and bindings.go check what it says, settings.go, workers.go and dbt.go read what else
// belongs to it, definition.go writes the translation, replicated.go is the other form, which knows
// no graph. signatures.go writes what functions of Python take and return in the words of such
// files, introspect.go compares tasks with it.
package ork
