// Package dbt reads dbt projects: their models, and which models must be built before others.
//
// Promises: for a project that dbt has parsed, the result follows target/manifest.json. For any
// other project the package reads the files. It finds references where dbt would find them. A
// reference that only dbt can resolve is a problem with its file and line, never a silently missing
// dependency. References inside macros are the exception, because no model contains them. The
// package runs nothing, and reads only the given files.
//
// Reading order: project.go is the public interface, manifest.go and files.go are the two ways to
// read a project, refs.go finds references in a text.
package dbt
