// Package types knows what a flow says about what its tasks are started with.
//
// Read takes that in any of its forms, short ones such as `optional text` and `int = 3` among them,
// and makes one JSON Schema (draft 2020-12) of it. Check compares a value with that, fills in what
// it leaves out, and tells everything that does not fit, each with its place.
//
// What it promises: it never panics and always ends, whatever somebody has written or sent; a check
// does a bounded amount of work, however the schema refers to itself; nothing is loaded from
// anywhere; values stay the bytes they are, so that large numbers and the order of keys survive;
// and filling in what has been filled in changes nothing.
//
// Of the standard it leaves out what lets schemas meet that do not know each other: $dynamicRef, an
// $id inside, and references to other documents are refused. Formats are notes for people, as the
// standard has it.
//
// Reading order: types.go is what others see, form.go and short.go read forms, schema.go and
// keywords.go make nodes of a schema, check.go and fill.go use them.
package types
