// Package types handles the inputs that a flow declares for its tasks.
//
// Read accepts declarations in all forms, including short ones such as `optional text` and `int =
// 3`, and converts them to one JSON Schema (draft 2020-12). Check compares a value with that, fills
// in defaults, and reports all problems with their places.
//
// Promises: the package never panics and always ends, for any declaration and any value. A check
// does a bounded amount of work, even if the schema refers to itself. Nothing is loaded from
// anywhere. Values keep their bytes, so large numbers and the order of keys survive. Filling in
// twice changes nothing more.
//
// The package omits the parts of the standard that combine independent schemas: it rejects
// $dynamicRef, an $id inside, and references to other documents. Formats are annotations only, as
// in the standard.
//
// Reading order: types.go is the public interface, form.go and short.go read forms, schema.go and
// keywords.go compile a schema, check.go and fill.go use it.
package types
