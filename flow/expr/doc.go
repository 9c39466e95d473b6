// Package expr looks inside JSON values without decoding them: it finds parts of a value,
// resolves references such as $params.order.items[2].sku, says whether a value contains a pattern,
// and evaluates the expressions that choose where a flow goes next, in JSON or in CEL.
//
// Values are raw bytes from the wire to the store, and stay so here: every value returned is a
// part of the value given, so large numbers and the order of keys survive, and nothing is copied
// that is only passed on. The bytes are taken to be valid JSON, checked where they entered. On
// other bytes nothing panics and nothing runs away: the answer is false or null, or, when the
// fault lies in a part that was not looked at, a piece of the input.
//
// Numbers are compared by their exact values, however long they are, and a text is never a number.
// Conditions in JSON keep PocketFlow's rules, where numbers are floats and texts may be numbers, if
// their environment says so.
//
// A path that leads nowhere is null, but a condition that compares it fails, unless its environment
// says that it coerces. An expression of the wrong shape is false; ParseCond tells what is wrong
// when a flow is defined. Only CEL decodes what it looks at, and it may fail for other reasons,
// too. Whatever is compared or calculated, what a hostile definition can make of a hostile value is
// over after a second or so. Parsed references and expressions are immutable, so one of each serves
// any number of goroutines; they and their results share memory with what they came from, which
// nobody may change afterwards.
package expr
