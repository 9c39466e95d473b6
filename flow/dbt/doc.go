// Package dbt reads projects of dbt: which models there are, and which of them have to be built
// before which.
//
// What it promises: a project that dbt has parsed is what its target/manifest.json says. Of another
// one the files are read: references are found in the places where dbt would find them, and
// whatever cannot be told without running dbt is a problem with its file and line, never a
// dependency that is silently missing. What macros refer to is the exception: it stands in no
// model. Nothing is run, and nothing is read outside of the files that are given.
//
// Reading order: project.go is what others see, manifest.go and files.go are the two ways to read a
// project, refs.go finds references in a text.
package dbt
